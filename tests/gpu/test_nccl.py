"""NCCL on one rank, which is what one GPU allows: two ranks that share a GPU are refused by NCCL."""

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
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "launch", "-n", "1", str(tmp_path / "program.py")],
        capture_output=True, text=True, timeout=300, env=variables, check=False,
    )  # fmt: skip
    assert "DONE" in done.stdout, done.stderr
