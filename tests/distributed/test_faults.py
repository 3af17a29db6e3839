"""Faults in the middle of training: no rank hangs, no checkpoint is half-written, and the message names the rank."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from pullback.distributed import checkpoint as dcp
from tests.distributed.running import environment, launch_text, needs_mpi

TRAIN = """
import datetime, os, signal, sys, time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("mpi")
rank = dist.get_rank()
module = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)), bucket_cap_mb=0.01)
optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    module(torch.randn(8, 64)).sum().backward()
    optimizer.step()
step()
step()
"""

FAULTS = {
    "killed in the middle of a bucket": (
        "if rank == 1: module.module[0].weight.register_hook(lambda grad: os.kill(os.getpid(), signal.SIGKILL))\nstep()",
        137, " was killed by signal 9",  # mpiexec ends the others by the same signal, and may report one of these
    ),
    "raises in backward": (
        "def fail(grad): raise ArithmeticError('no gradient today')\n"
        "if rank == 1: module.module[0].weight.register_hook(fail)\nstep()",
        1, "[rank1]: ArithmeticError: no gradient today",
    ),
    "slow": (
        "if rank == 1: module.module[0].weight.register_hook(lambda grad: time.sleep(200))\n"
        "if rank == 0: dist.group.WORLD.set_timeout(datetime.timedelta(seconds=2))\nstep()",
        1, "still missing: rank 1",
    ),
    "stops early": (
        "for _ in range(3 - rank): step()",
        1, "rank 1: its program has ended",
    ),
    "another model": (
        "DistributedDataParallel(nn.Linear(2, 2 + rank))",
        1, "DDP expects same model across all ranks",
    ),
}  # fmt: skip


@needs_mpi
@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_rank_at_fault_ends_all_and_is_named(fault: str, tmp_path: Path) -> None:
    program, status, said = FAULTS[fault]
    done = launch_text(TRAIN + program, tmp_path)
    assert said in done.stderr
    assert done.returncode == status


FULL = """
import resource, signal, sys
import pullback
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # a file can grow no further, as on a full disk
pullback.save({"weight": pullback.ones(100_000)}, sys.argv[1])
"""


def test_a_full_disk_leaves_the_former_checkpoint_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    pullback.save({"weight": pullback.zeros(3)}, path)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, env=environment(), check=False
    )
    assert "OSError" in done.stderr
    assert pullback.load(path)["weight"].tolist() == [0.0, 0.0, 0.0]
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt"]


@needs_mpi
def test_a_full_disk_on_the_saving_rank_ends_all(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    program = f"""
if rank == 0:
    torch.save(module.state_dict(), {str(path)!r})
dist.barrier()
if rank == 0:
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    step_count = 3
    torch.save({{"step": step_count, **module.state_dict()}}, {str(path)!r})
dist.barrier()
"""
    done = launch_text(TRAIN + program, tmp_path)
    assert "[rank0]: OSError" in done.stderr
    assert done.returncode == 1
    assert "module.0.weight" in pullback.load(path)
    assert "step" not in pullback.load(path)


@needs_mpi
def test_a_rank_killed_while_saving_leaves_the_former_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    program = f"""
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import filesystem
dcp.save({{"step": 1, **module.state_dict()}}, checkpoint_id={str(folder)!r})
if rank == 1:
    def die(*arguments): os.kill(os.getpid(), signal.SIGKILL)
    filesystem.FileSystemWriter._settle = die
dcp.save({{"step": 2, **module.state_dict()}}, checkpoint_id={str(folder)!r})
"""
    done = launch_text(TRAIN + program, tmp_path)
    assert " was killed by signal 9" in done.stderr
    assert done.returncode == 137
    state = {"step": 0, "module.0.weight": pullback.zeros(64, 64)}
    dcp.load(state, checkpoint_id=folder)
    assert state["step"] == 1
    dcp.save({"step": 3}, checkpoint_id=folder)  # removes what nobody names
    assert len(list(folder.iterdir())) == 2
