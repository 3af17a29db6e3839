"""NCCL on one rank, which is what one GPU allows, and two ranks that share a GPU: NCCL refuses, main memory serves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pullback import distributed as dist

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
group = dist.group.WORLD
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8):
    values = torch.arange(8, device="cuda").to(dtype)
    before = values.clone()
    dist.all_reduce(values)
    dist.broadcast(values, 0)
    dist.reduce(values, 0)
    assert values.device.type == "cuda" and torch.equal(values, before), dtype
values = torch.randn(6, device="cuda")
gathered = torch.empty(6, device="cuda")
dist.all_gather_into_tensor(gathered, values)
assert torch.equal(gathered, values)
dist.reduce_scatter_tensor(gathered.zero_(), values)
assert torch.equal(gathered, values)
dist.all_to_all_single(gathered.zero_(), values)
assert torch.equal(gathered, values)
work = dist.all_reduce(values, async_op=True)
assert work.wait() and torch.equal(gathered, values)
dist.all_reduce(host := torch.ones(2))
assert host.tolist() == [1, 1]
found = [None]
dist.all_gather_object(found, {"rank": dist.get_rank()})
assert found == [{"rank": 0}]
dist.barrier()

torch.manual_seed(0)
plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).cuda()
parallel = DistributedDataParallel(plain, device_ids=[0])
x = torch.randn(5, 3, device="cuda")
parallel(x).sum().backward()
averaged = [parameter.grad.clone() for parameter in plain.parameters()]
plain.zero_grad()
plain(x).sum().backward()
for parameter, grad in zip(plain.parameters(), averaged):
    assert torch.allclose(parameter.grad, grad)
dist.destroy_process_group()
print("DONE")
"""


@pytest.mark.skipif(
    not (dist.is_nccl_available() and dist.is_mpi_available()), reason="needs CuPy with NCCL, and mpi4py"
)
def test_collectives_and_data_parallel_training_on_one_gpu(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = launched(1, tmp_path / "program.py")
    assert "DONE" in done.stdout, done.stderr


SHARING = """
import torch
import torch.distributed as dist

dist.init_process_group(dist_backend)
rank = dist.get_rank()
values = torch.full((4,), float(rank + 1), device="cuda")
dist.all_reduce(values)
assert values.tolist() == [3.0] * 4
gathered = [torch.empty(2, device="cuda") for _ in range(2)]
dist.all_gather(gathered, torch.full((2,), float(rank), device="cuda"))
assert [t.tolist() for t in gathered] == [[0.0, 0.0], [1.0, 1.0]]
dist.barrier()
dist.destroy_process_group()
print("DONE", rank)
"""


@pytest.mark.skipif(not dist.is_mpi_available(), reason="needs mpi4py")
def test_two_ranks_share_a_gpu_by_way_of_main_memory(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SHARING.replace("dist_backend", '"mpi"'))
    done = launched(2, tmp_path / "program.py")
    assert "DONE 0" in done.stdout, done.stderr
    assert "DONE 1" in done.stdout, done.stderr


@pytest.mark.skipif(not (dist.is_nccl_available() and dist.is_mpi_available()), reason="needs NCCL and mpi4py")
def test_two_ranks_on_one_gpu_are_told_what_nccl_refuses(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SHARING.replace("dist_backend", '"nccl"'))
    done = launched(2, tmp_path / "program.py")
    assert done.returncode
    assert "ncclCommInitRank failed: invalid usage" in done.stderr, done.stderr


def launched(ranks: int, program: Path) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pullback", "launch", "-n", str(ranks), str(program)],
        capture_output=True, text=True, timeout=60, env=variables, check=False,
    )  # fmt: skip
