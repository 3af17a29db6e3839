"""Tensors of another device on two ranks: they are sent, and what comes back is on the device again."""

from __future__ import annotations

import os
from typing import Any

import pullback
from pullback import distributed as dist
from pullback import nn
from pullback.distributed.fsdp import fully_shard
from pullback.nn.parallel import DistributedDataParallel
from tests.devices import fake_library as fake_library  # makes the device known

RANK = int(os.environ.get("RANK", 0))


def on_device(*values: float) -> Any:
    return pullback.tensor(values, dtype=pullback.float32, device="fake")


def check_collectives_leave_results_on_the_device() -> None:
    values = on_device(RANK, 1.0)
    dist.all_reduce(values)
    assert values.device.type == "fake"
    assert values.tolist() == [1, 2]
    dist.all_reduce(values, dist.ReduceOp.AVG)
    assert values.tolist() == [1, 2]
    gathered = [on_device(0, 0) for _ in range(2)]
    dist.all_gather(gathered, on_device(RANK, 5))
    assert [part.tolist() for part in gathered] == [[0, 5], [1, 5]]
    part = on_device(0)
    dist.reduce_scatter(part, [on_device(1 + RANK), on_device(10 + RANK)])
    assert part.tolist() == [[3], [21]][RANK]
    swapped = on_device(0, 0)
    dist.all_to_all_single(swapped, on_device(2.0 * RANK, 2.0 * RANK + 1))
    assert swapped.tolist() == [[0, 2], [1, 3]][RANK]
    dist.broadcast(values := on_device(RANK + 7), 1)
    assert values.tolist() == [8]


def check_memory_with_gaps() -> None:
    table = pullback.zeros(2, 3, device="fake")
    column = table[:, 1]
    column += RANK + 1
    dist.all_reduce(column)
    assert table.tolist() == [[0, 3, 0], [0, 3, 0]]


def check_messages_from_rank_to_rank() -> None:
    if RANK == 0:
        dist.send(on_device(3, 4), 1)
    else:
        dist.recv(values := on_device(0, 0), 0)
        assert values.tolist() == [3, 4]


def check_works_that_are_waited_for_later() -> None:
    values = [on_device(RANK + number) for number in range(5)]
    works = [dist.all_reduce(value, async_op=True) for value in values]
    for work in reversed(works):
        assert work is not None
        work.wait()
    assert [value.item() for value in values] == [1, 3, 5, 7, 9]


def _trained(wrap: Any, device: str) -> list[Any]:
    pullback.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    wrapped = wrap(module)
    optimizer = pullback.optim.SGD(wrapped.parameters(), 0.1)
    pullback.manual_seed(1)
    x = pullback.randn(4, 3).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        wrapped(x[RANK::2]).square().mean().backward()
        optimizer.step()
    return [value.full_tensor() if hasattr(value, "full_tensor") else value for value in wrapped.parameters()]


def check_data_parallel_training_is_that_of_the_cpu() -> None:
    expected = _trained(DistributedDataParallel, "cpu")
    for values, wanted in zip(_trained(DistributedDataParallel, "fake"), expected, strict=True):
        assert values.device.type == "fake"
        assert pullback.allclose(values.cpu(), wanted, atol=1e-6)


def check_sharded_training_is_that_of_the_cpu() -> None:
    def shard(module: Any) -> Any:
        fully_shard(module)
        return module

    expected = _trained(DistributedDataParallel, "cpu")
    for values, wanted in zip(_trained(shard, "fake"), expected, strict=True):
        assert pullback.allclose(values.cpu(), wanted, atol=1e-6)
