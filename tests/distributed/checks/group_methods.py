"""Collectives as methods of a group, on two ranks."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback.distributed import ReduceOp
from pullback.distributed.distributed_c10d import _resolve_process_group

RANK = int(os.environ.get("RANK", 0))


def _world() -> Any:
    return dist.group.WORLD


def _own(size: int = 1) -> Any:
    return pullback.ones(size) * (RANK + 1)


def check_sums_and_limits() -> None:
    largest = dist.AllreduceOptions()
    largest.reduceOp = ReduceOp.MAX
    for arguments, expected in (((), 3), ((ReduceOp.MIN,), 1), ((largest,), 2)):
        alone, listed = _own(), _own()
        assert _world().allreduce(alone, *arguments).wait()
        assert _world().allreduce([listed], *arguments).wait()
        assert alone.tolist() == listed.tolist() == [expected]
    several = [_own(), _own(2)]
    _world().allreduce_coalesced(several).wait()
    assert [each.tolist() for each in several] == [[3], [3, 3]]


def check_roots() -> None:
    from_first, from_second, to_second = _own(), _own(), _own()
    second = dist.BroadcastOptions(rootRank=1)
    _world().broadcast(from_first, 0).wait()
    _world().broadcast([from_second], second).wait()
    _world().reduce(to_second, 1).wait()
    assert (from_first.tolist(), from_second.tolist()) == ([1], [2])
    assert to_second.tolist() == [RANK * 2 + 1]
    parts = [pullback.zeros(1), pullback.zeros(1)] if RANK == 0 else []
    _world().gather(parts, _own(), 0).wait()
    assert [part.item() for part in parts] == ([1, 2] if RANK == 0 else [])
    own = pullback.zeros(1)
    _world().scatter([own], [[_own(), 5 * _own()]] if RANK == 1 else [], dist.ScatterOptions(rootRank=1)).wait()
    assert own.tolist() == [2 if RANK == 0 else 10]


def check_parts() -> None:
    lists, flat, rows = [[pullback.zeros(1), pullback.zeros(1)]], pullback.zeros(2), pullback.zeros(2)
    _world().allgather(lists, [_own()]).wait()
    _world()._allgather_base(flat, _own()).wait()
    _world().alltoall_base(rows, _own(2), [], []).wait()
    assert [each.item() for each in lists[0]] == flat.tolist() == rows.tolist() == [1, 2]
    one, other = pullback.zeros(1), pullback.zeros(1)
    _world().reduce_scatter([one], [[_own(), 3 * _own()]]).wait()
    _world()._reduce_scatter_base(other, _own(2)).wait()
    assert (one.item(), other.item()) == (3 + 6 * RANK, 3)
    received = [pullback.zeros(1), pullback.zeros(1)]
    _world().alltoall(received, [_own(), _own()]).wait()
    assert [each.item() for each in received] == [1, 2]


def check_messages_and_barriers() -> None:
    if RANK == 0:
        _world().send([_own()], 1, 3).wait()
    else:
        received = pullback.zeros(1)
        work = _world().recv_anysource([received], 3)
        work.wait()
        assert (received.item(), work.source_rank()) == (1, 0)
    assert _world().barrier().wait()
    _world().monitored_barrier()
    with pytest.raises(ValueError, match="requires a single tensor, but 2 are given"):
        _world().allreduce([_own(), _own()])


def check_a_timeout_of_one_call() -> None:
    work = _world().barrier(timeout=timedelta(seconds=100))
    work.wait()
    assert work.limit == timedelta(seconds=100)
    assert _world().barrier(dist.BarrierOptions()).limit is None


def check_names_and_kinds() -> None:
    assert _resolve_process_group(_world().group_name) is _world()
    with pytest.raises(RuntimeError, match="Could not resolve the process group registered under the name lost"):
        _resolve_process_group("lost")
    with pytest.raises(TypeError, match=r"of type datetime\.timedelta, got 3"):
        dist.new_group([0, 1], timeout=3)  # type: ignore[arg-type]  # wrong on purpose
    operations: list[Any] = [ReduceOp.SUM, ReduceOp(ReduceOp.SUM), "sum"]
    assert [isinstance(each, ReduceOp) for each in operations] == [True, True, False]
