"""What the program that started this process says about it: which rank it is, of how many, and where.

MPICH's and Open MPI's `mpiexec`, Slurm's `srun` and torchrun each have words of their own for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Placement", "find_master", "find_placement", "has_process_manager"]

_WORDS = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE"),
)
"""Per launcher: the variables of rank, number of ranks, rank on this machine, and ranks on this machine."""


@dataclass(frozen=True)
class Placement:
    """The place of a process among those that were started together.

    >>> find_placement({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"})
    Placement(rank=1, world_size=4, local_rank=1, local_world_size=2)
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int

    def variables(self) -> dict[str, str]:
        """The variables that torchrun sets, for this place."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_world_size),
            "GROUP_RANK": str(self.rank // max(self.local_world_size, 1)),
            "GROUP_WORLD_SIZE": str(max(self.world_size // max(self.local_world_size, 1), 1)),
            "ROLE_RANK": str(self.rank),
            "ROLE_WORLD_SIZE": str(self.world_size),
            "ROLE_NAME": "default",
        }


def find_placement(variables: Mapping[str, str] | None = None) -> Placement | None:
    """The place that an MPI launcher gave this process; None if none started it.

    `salloc` and `sbatch` set `SLURM_PROCID` for the one process that runs the job's script as well: that is not a rank
    unless the step has a number of its own.
    """
    found = os.environ if variables is None else variables
    for rank, size, local_rank, local_size in _WORDS:
        if rank not in found or size not in found:
            continue
        if rank == "SLURM_PROCID" and found.get("SLURM_STEP_ID", "batch") in ("batch", "4294967291"):
            continue
        on_machine = found.get(local_size, found[size]).partition("(")[0].partition(",")[0]
        return Placement(int(found[rank]), int(found[size]), int(found.get(local_rank, found[rank])), int(on_machine))
    return None


def has_process_manager(variables: Mapping[str, str] | None = None) -> bool:
    """Whether MPI can ask the program that started this process for the others: Slurm answers only under `srun --mpi=...`.

    >>> has_process_manager({"SLURM_PROCID": "0"}), has_process_manager({"PMI_RANK": "0", "PMI_FD": "7"})
    (False, True)
    """
    found = os.environ if variables is None else variables
    return any(name.startswith(("PMI_", "PMIX_", "OMPI_COMM_WORLD_")) for name in found)


def find_master(variables: Mapping[str, str] | None = None) -> tuple[str, int]:
    """The machine of rank 0 and a port on it, for ranks that no one has told.

    Under Slurm it is the first machine of the step, and the port differs between jobs.

    >>> find_master({"SLURM_STEP_NODELIST": "node[03-05,9],other", "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "2"})
    ('node03', 20033)
    >>> find_master({})
    ('localhost', 29500)
    """
    found = os.environ if variables is None else variables
    machines = found.get("SLURM_STEP_NODELIST") or found.get("SLURM_JOB_NODELIST")
    if not machines:
        return "localhost", 29500
    first = re.match(r"([^\[,]*)(?:\[([^-,\]]*)[^\]]*\])?([^,]*)", machines)
    numbers = [found.get(name, "0") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")]
    job, step = (int(number) if number.isdigit() else 0 for number in numbers)
    return "".join(part or "" for part in first.groups()) if first else "localhost", 20000 + (31 * job + step) % 12000
