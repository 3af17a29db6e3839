"""`python -m pullback.distributed.run`: torchrun's command line, on MPI.

One call starts the ranks of all machines (`--hosts`, `--hostfile`, or a Slurm job): MPI meets its ranks by itself, so
torchrun's options for the meeting are accepted and not needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pullback.distributed.launch import Launch, launch

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchrun", description=__doc__, conflict_handler="resolve")
    add = parser.add_argument
    add("--nnodes", default="1", help="machines, or a range min:max")
    add("--nproc-per-node", "--nproc_per_node", default="1", help="processes per machine: a number, cpu, gpu or auto")
    add("--hosts", help="the machines, separated by commas")
    add("--hostfile", help="a file with one machine a line")
    add("--max-restarts", "--max_restarts", type=int, default=0, help="how often to start again after a failure")
    add("--master-addr", "--master_addr", default=None, help="what MASTER_ADDR says")
    add("--master-port", "--master_port", default=None, help="what MASTER_PORT says")
    add("-m", "--module", action="store_true", help="the program is a module")
    add("--tee", "-t", default="0", help="anything but 0: begin every line with its rank")
    meeting = parser.add_argument_group("accepted for torchrun's sake: MPI needs none of these")
    for name, options in {
        "--node-rank": {"default": None}, "--rdzv-backend": {}, "--rdzv-endpoint": {}, "--rdzv-id": {"default": "none"},
        "--rdzv-conf": {}, "--role": {}, "--start-method": {}, "--monitor-interval": {}, "--log-dir": {}, "--redirects": {},
        "--local-ranks-filter": {}, "--local-addr": {}, "--logs-specs": {}, "--numa-binding": {},
    }.items():  # fmt: skip
        meeting.add_argument(name, name.replace("-", "_").replace("__", "--", 1), **options)  # type: ignore[arg-type]
    meeting.add_argument("-r", dest="redirects")
    for flag in ("--standalone", "--run-path", "--no-python"):
        meeting.add_argument(flag, flag.replace("-", "_").replace("__", "--", 1), action="store_true")
    add("training_script", help="the program")
    add("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def processes_per_node(given: str) -> int:
    """The number that `--nproc-per-node` means.

    >>> processes_per_node("4")
    4
    """
    if given in ("cpu", "auto"):
        return os.cpu_count() or 1
    if given == "gpu":
        from pullback import cuda  # lazy: looks for a GPU

        if not cuda.is_available():
            raise ValueError("Cuda is not available: give a number of processes, or cpu")
        return int(cuda.device_count())
    try:
        return int(given)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {given}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the program that torchrun's arguments name."""
    given = _parser().parse_args(list(sys.argv[1:] if arguments is None else arguments))
    nodes = int(given.nnodes.rpartition(":")[2])
    if nodes > 1 and not (given.hosts or given.hostfile or "SLURM_JOB_ID" in os.environ):
        raise SystemExit(
            f"torchrun: --nnodes={nodes} needs to know the machines: MPI starts the ranks of all of them from one call. "
            "Call it on one machine, with --hosts first,second or --hostfile, or inside of a Slurm job."
        )
    if given.no_python:
        raise SystemExit("torchrun: --no-python is not supported: pullback runs Python programs")
    variables = {"TORCHELASTIC_RUN_ID": given.rdzv_id}
    if given.master_addr:
        variables["MASTER_ADDR"] = given.master_addr
    if given.master_port:
        variables["MASTER_PORT"] = given.master_port
    program = ["-m"] * given.module + [given.training_script, *given.training_script_args]
    ranks = nodes * processes_per_node(given.nproc_per_node)
    return launch(Launch(program, ranks, given.hosts, given.hostfile, given.tee != "0", given.max_restarts, variables))


if __name__ == "__main__":
    sys.exit(main())
