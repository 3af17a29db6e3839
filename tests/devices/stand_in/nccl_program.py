"""One rank of tests/distributed/test_nccl.py: NCCL, as the stand-in for CuPy has it, with one GPU per rank.

The process group is begun before a GPU is chosen, as many programs do, and the order of work on streams is watched.
"""

from __future__ import annotations

import sys
from typing import Any

import cupy

import pullback
from pullback import distributed as dist
from pullback import nn
from pullback.distributed.fsdp import fully_shard
from pullback.nn.parallel import DistributedDataParallel
from tests.devices.stand_in.watch import watched

dist.init_process_group("nccl")
RANK = dist.get_rank()
GPU = f"cuda:{RANK}"


def here(*values: float, dtype: Any = pullback.float32) -> Any:
    return pullback.tensor(values, device=GPU).to(dtype)


def check_messages_before_any_collective() -> None:
    if RANK == 0:
        dist.send(here(3, 4), 1)
    else:
        dist.recv(values := here(0, 0), 0)
        assert values.tolist() == [3, 4]


def check_messages_that_wait_for_each_other() -> None:
    received = here(0, 0)
    ops = [dist.P2POp(dist.isend, here(RANK, 7), 1 - RANK), dist.P2POp(dist.irecv, received, 1 - RANK)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert received.tolist() == [1 - RANK, 7]


def check_every_dtype_and_way_of_joining() -> None:
    for dtype in (
        pullback.float32,
        pullback.float64,
        pullback.float16,
        pullback.bfloat16,
        pullback.int64,
        pullback.uint8,
    ):
        values = here(RANK + 1, 2, dtype=dtype)
        dist.all_reduce(values)
        assert values.device == pullback.device(GPU)
        assert values.tolist() == [3, 4], dtype
    for op, expected in (("AVG", [1.5, 2]), ("PRODUCT", [2, 4]), ("MAX", [2, 2]), ("MIN", [1, 2])):
        dist.all_reduce(values := here(RANK + 1, 2), getattr(dist.ReduceOp, op))
        assert values.tolist() == expected, op


def check_all_collectives() -> None:
    dist.broadcast(values := here(RANK, 5), 1)
    assert values.tolist() == [1, 5]
    dist.reduce(values := here(RANK + 1, 5), 1)
    assert RANK == 0 or values.tolist() == [3, 10]
    gathered = [here(0, 0), here(0, 0)]
    dist.all_gather(gathered, here(RANK, 5))
    assert [part.tolist() for part in gathered] == [[0, 5], [1, 5]]
    dist.gather(here(RANK), [here(9), here(9)] if RANK == 1 else None, 1)
    dist.scatter(part := here(9), [here(4), here(6)] if RANK == 0 else None, 0)
    assert part.tolist() == [[4], [6]][RANK]
    dist.reduce_scatter(part := here(0), [here(1 + RANK), here(10 + RANK)])
    assert part.tolist() == [[3], [21]][RANK]
    dist.all_to_all_single(swapped := here(0, 0), here(2.0 * RANK, 2.0 * RANK + 1))
    assert swapped.tolist() == [[0, 2], [1, 3]][RANK]
    dist.barrier()


def check_gaps_subgroups_and_main_memory() -> None:
    table = pullback.zeros(2, 3, device=GPU)
    column = table[:, 1]
    column += RANK + 1
    dist.all_reduce(column)
    assert table.tolist() == [[0, 3, 0], [0, 3, 0]]
    group = dist.new_group([0, 1])
    dist.all_reduce(values := here(RANK), group=group)
    assert values.tolist() == [1]
    dist.all_reduce(host := pullback.ones(2))
    assert host.tolist() == [2, 2]
    found: list[Any] = [None, None]
    dist.all_gather_object(found, {"rank": RANK})
    assert found == [{"rank": 0}, {"rank": 1}]


def check_works_that_are_waited_for_later() -> None:
    values = [here(RANK + number) for number in range(5)]
    works: list[Any] = [dist.all_reduce(value, async_op=True) for value in values]
    for work in reversed(works):
        work.wait()
    assert [value.item() for value in values] == [1, 3, 5, 7, 9]


def _trained(wrap: Any, device: str) -> list[Any]:
    pullback.manual_seed(0)
    module = wrap(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device))
    optimizer = pullback.optim.AdamW(module.parameters(), 0.1)
    pullback.manual_seed(1)
    x = pullback.randn(4, 3).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        module(x[RANK::2]).square().mean().backward()
        optimizer.step()
    return [value.full_tensor() if hasattr(value, "full_tensor") else value for value in module.parameters()]


def _sharded(module: Any) -> Any:
    fully_shard(module[0])
    return fully_shard(module)


def check_training_is_that_of_the_cpu() -> None:
    expected = _trained(DistributedDataParallel, "cpu")
    before = len(cupy.cuda.nccl.calls)
    for wrap, call in ((DistributedDataParallel, "allReduce"), (_sharded, "reduceScatter")):
        for values, wanted in zip(_trained(wrap, GPU), expected, strict=True):
            assert values.device == pullback.device(GPU)
            assert pullback.allclose(values.cpu(), wanted, atol=1e-5)
        assert call in cupy.cuda.nccl.calls[before:]


def main() -> None:
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            with watched() as watch:
                check()
            assert not watch.wrong, (name, watch.wrong[:3])
    dist.destroy_process_group()
    print("DONE", RANK)


if "--share" in sys.argv:
    dist.all_reduce(pullback.ones(1, device="cuda:0"))
else:
    main()
