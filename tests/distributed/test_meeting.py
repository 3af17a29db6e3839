"""Processes that were not started by MPI: they meet at an address, or at a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.running import PATIENCE, environment, free_port, mpich_alone, needs_mpi

SPAWN = r"""
import os, signal, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

def work(rank, size, method, failure):
    if method == "env":
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", sys.argv[1]
        dist.init_process_group("gloo", rank=rank, world_size=size)
    elif method.startswith("store"):
        kind, where = method.removeprefix("store:").split("=")
        made = {"tcp": lambda: dist.TCPStore("127.0.0.1", int(where), size, rank == 0), "file": lambda: dist.FileStore(where, size)}
        store = dist.PrefixStore("run", made[kind]())
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    else:
        dist.init_process_group("gloo", init_method=method, rank=rank, world_size=size)
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    sys.stdout.write(f"{rank} {model.module.weight.grad.tolist()}\n")
    sys.stdout.flush()
    if failure == "kill" and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if failure:
        dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, args=(2, sys.argv[2], sys.argv[3]), nprocs=2)
"""


def spawn(folder: Path, method: str, failure: str = "") -> subprocess.CompletedProcess[str]:
    script = folder / "program.py"
    script.write_text(SPAWN)
    command = [sys.executable, "-m", "pullback", "run", str(script), str(free_port()), method, failure]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=PATIENCE, check=False)


@needs_mpi
@mpich_alone
@pytest.mark.parametrize("method", ["env", "tcp", "file", "a store of TCP", "a store in a file"])
def test_spawned_processes_meet(method: str, tmp_path: Path) -> None:
    named = {
        "env": "env", "tcp": f"tcp://127.0.0.1:{free_port()}", "file": f"file://{tmp_path}/meeting",
        "a store of TCP": f"store:tcp={free_port()}", "a store in a file": f"store:file={tmp_path}/store",
    }[method]  # fmt: skip
    done = spawn(tmp_path, named)
    assert sorted(done.stdout.splitlines()) == ["0 [[1.5, 1.5]]", "1 [[1.5, 1.5]]"], done.stderr
    assert done.returncode == 0


@needs_mpi
@mpich_alone
def test_a_killed_process_is_noticed_by_the_others(tmp_path: Path) -> None:
    program = """
import os, signal
import pullback as torch
import pullback.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == int(os.environ["VICTIM"]):
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
"""
    for victim in (0, 1):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2", "VICTIM": str(victim)}
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                env=environment(RANK=str(rank), **place),
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        survivor = ranks[1 - victim]
        try:
            said = survivor.communicate(timeout=PATIENCE)[1]
        finally:
            for rank in ranks:
                rank.kill()
                rank.communicate()
        assert f"rank {victim}: its process has ended" in said
        assert survivor.returncode == 1
