"""Collectives of tensors, on two ranks."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback.distributed import ReduceOp

RANK = int(os.environ.get("RANK", 0))


def check_every_dtype_is_summed() -> None:
    for dtype in (
        pullback.uint8, pullback.int8, pullback.int16, pullback.int32, pullback.int64, pullback.uint16, pullback.uint32,
        pullback.uint64, pullback.float16, pullback.bfloat16, pullback.float32, pullback.float64, pullback.complex64,
        pullback.complex128,
    ):  # fmt: skip
        values = pullback.tensor([RANK, 1, RANK + 1]).to(dtype)
        dist.all_reduce(values)
        assert values.dtype is dtype
        assert values.to(pullback.complex128).tolist() == [1, 2, 3], dtype


def check_truth_values_are_joined_as_logic_does() -> None:
    expected = {
        "SUM": [1, 1, 1], "PRODUCT": [0, 1, 1], "MIN": [0, 1, 1], "MAX": [1, 1, 1], "BAND": [0, 1, 1], "BOR": [1, 1, 1],
        "BXOR": [1, 0, 0],
    }  # fmt: skip
    for name, result in expected.items():
        values = pullback.tensor([RANK, 1, RANK + 1]).bool()
        dist.all_reduce(values, getattr(ReduceOp, name))
        assert values.int().tolist() == result, name


def check_every_way_of_joining_integers() -> None:
    expected = {
        "SUM": [1, 2, 3], "PRODUCT": [0, 1, 2], "MIN": [0, 1, 1], "MAX": [1, 1, 2], "BAND": [0, 1, 0], "BOR": [1, 1, 3],
        "BXOR": [1, 0, 3],
    }  # fmt: skip
    for name, result in expected.items():
        values = pullback.tensor([RANK, 1, RANK + 1])
        dist.all_reduce(values, getattr(ReduceOp, name))
        assert values.tolist() == result, name


def check_means_products_and_limits_of_short_floats() -> None:
    expected = {"AVG": [0.5, 1, 1.5], "PRODUCT": [0, 1, 2], "MIN": [0, 1, 1], "MAX": [1, 1, 2]}
    for dtype in (pullback.float16, pullback.bfloat16, pullback.float32):
        for name, result in expected.items():
            values = pullback.tensor([RANK, 1, RANK + 1]).to(dtype)
            dist.all_reduce(values, getattr(ReduceOp, name))
            assert values.tolist() == result, (dtype, name)


def check_a_sum_of_multiples() -> None:
    values = pullback.tensor([1.0, 2.0])
    dist.all_reduce(values, dist._make_nccl_premul_sum(0.5))
    assert values.tolist() == [1.0, 2.0]


def check_wrong_ways_of_joining_are_refused() -> None:
    with pytest.raises(ValueError, match=r"all_reduce does not support RedOpType.MAX on complex tensors"):
        dist.all_reduce(pullback.ones(1, dtype=pullback.complex64), ReduceOp.MAX)
    with pytest.raises(RuntimeError, match=r"Cannot use ReduceOp.BAND with non-integral dtype"):
        dist.all_reduce(pullback.ones(1), ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Int"):
        dist.all_reduce(pullback.ones(1, dtype=pullback.int32), ReduceOp.AVG)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        dist.all_reduce(pullback.ones(1), "sum")


def check_memory_in_another_order_is_written_in_place() -> None:
    whole = pullback.arange(12.0).reshape(2, 6)
    dist.all_reduce(whole[:, ::2])
    assert whole.tolist() == [[0, 1, 4, 3, 8, 5], [12, 7, 16, 9, 20, 11]]
    turned = pullback.arange(6.0).reshape(2, 3).t()
    dist.broadcast(turned.mul_(RANK + 1), 1)
    assert turned.t().reshape(-1).tolist() == [0, 2, 4, 6, 8, 10]


def check_leaves_may_be_written_and_versions_are_not_counted() -> None:
    leaf = pullback.ones(2, requires_grad=True)
    dist.all_reduce(leaf)
    assert (leaf.tolist(), leaf._version) == ([2.0, 2.0], 0)


def check_empty_tensors_and_numbers() -> None:
    empty, number = pullback.empty(0, 3), pullback.tensor(2.0)
    dist.all_reduce(empty)
    dist.all_reduce(number)
    assert (list(empty.shape), float(number)) == ([0, 3], 4.0)


def check_work_handles_and_futures() -> None:
    values = pullback.ones(1000)
    work = dist.all_reduce(values, async_op=True)
    assert work is not None
    doubled = work.get_future().then(lambda future: 2 * future.wait()[0])
    assert work.wait(timedelta(seconds=5))
    assert work.is_completed()
    assert work.is_success()
    assert work.exception() is None
    assert work.result()[0] is values
    assert (float(values[0]), float(doubled.wait()[0])) == (2.0, 4.0)


def check_many_at_once_complete_in_any_order() -> None:
    tensors = [pullback.full((size,), float(RANK + 1)) for size in (1, 10_000, 3, 300_000, 7)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        assert work is not None
        work.wait()
    assert all(float(tensor[-1]) == 3.0 for tensor in tensors)


def check_reduce_and_broadcast_have_one_end() -> None:
    values = pullback.tensor([1.0, 2.0]) * (RANK + 1)
    dist.reduce(values, dst=1)
    assert values.tolist() == ([3.0, 6.0] if RANK == 1 else [1.0, 2.0])
    dist.broadcast(values, group_src=1)
    assert values.tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="Must specify global_rank or group_rank"):
        dist.broadcast(values)


def check_gathering() -> None:
    own = pullback.tensor([RANK, RANK + 1])
    parts = [pullback.zeros(2, dtype=pullback.int64) for _ in range(2)]
    dist.all_gather(parts, own)
    assert [part.tolist() for part in parts] == [[0, 1], [1, 2]]
    flat, stacked = pullback.zeros(4, dtype=pullback.int64), pullback.zeros(2, 2, dtype=pullback.int64)
    dist.all_gather_into_tensor(flat, own)
    dist.all_gather_into_tensor(stacked, own)
    assert flat.tolist() == [0, 1, 1, 2]
    assert stacked.tolist() == [[0, 1], [1, 2]]
    received = [pullback.zeros(2, dtype=pullback.int64) for _ in range(2)] if RANK == 1 else None
    dist.gather(own, received, dst=1)
    assert received is None or [part.tolist() for part in received] == [[0, 1], [1, 2]]


def check_gathering_refuses_what_does_not_fit() -> None:
    with pytest.raises(RuntimeError, match="expected length 2, got 1"):
        dist.all_gather([pullback.zeros(2)], pullback.ones(2))
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 1 \(expected \(2,\), got \(3,\)\)"):
        dist.all_gather([pullback.zeros(2), pullback.zeros(3)], pullback.ones(2))
    with pytest.raises(ValueError, match="must be world_size times"):
        dist.all_gather_into_tensor(pullback.zeros(3), pullback.ones(2))
    with pytest.raises(TypeError, match=r"of type List\[torch.Tensor\] but got <class '.*Tensor'> instead"):
        dist.all_gather(pullback.zeros(2), pullback.zeros(1))
    words = pytest.raises(ValueError, match="Invalid usage of tensors with different dtypes")
    one, two = pullback.zeros(2), pullback.zeros(2, dtype=pullback.int32)
    with words:
        dist.all_gather([two, two], one)
    with words:
        dist.reduce_scatter(one, [two, two])
    with words:
        dist.all_to_all([one, one], [two, two])
    with words:
        dist.all_to_all_single(one, two)
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch.Tensor"):
        dist.all_reduce([pullback.ones(1)])


def check_scattering() -> None:
    own = pullback.zeros(2)
    dist.scatter(own, [pullback.ones(2), pullback.full((2,), 2.0)] if RANK == 0 else None, src=0)
    assert own.tolist() == [RANK + 1.0] * 2
    with pytest.raises(ValueError, match="must NOT be specified on non-source ranks"):
        dist.scatter(own, [own, own], src=1 - RANK)


def check_reducing_and_scattering() -> None:
    own = pullback.zeros(2)
    dist.reduce_scatter(own, [pullback.ones(2), pullback.full((2,), 2.0)])
    assert own.tolist() == [2.0 * (RANK + 1)] * 2
    dist.reduce_scatter_tensor(own, pullback.arange(4.0), ReduceOp.AVG)
    assert own.tolist() == [2.0 * RANK, 2.0 * RANK + 1]
    uneven = [pullback.ones(1), pullback.ones(3)]
    part = pullback.zeros(1 + 2 * RANK)
    dist.reduce_scatter(part, uneven)
    assert part.tolist() == [2.0] * (1 + 2 * RANK)


def check_everybody_to_everybody() -> None:
    received = [pullback.zeros(1), pullback.zeros(1)] if RANK == 0 else [pullback.zeros(2), pullback.zeros(2)]
    dist.all_to_all(received, [pullback.full((1,), float(RANK)), pullback.full((2,), float(RANK))])
    assert [part.tolist() for part in received] == [[0.0] * (RANK + 1), [1.0] * (RANK + 1)]
    output = pullback.zeros(3, 2)
    given = pullback.arange(6.0).reshape(3, 2) + 10 * RANK
    sizes: Any = ([1, 2], [1, 2]) if RANK == 0 else ([2, 1], [2, 1])
    dist.all_to_all_single(output, given, *sizes)
    assert output.tolist() == ([[0, 1], [10, 11], [12, 13]] if RANK == 0 else [[2, 3], [4, 5], [14, 15]])


def check_several_tensors_in_one_message() -> None:
    tensors = [pullback.ones(2), pullback.full((1, 3), 2.0)]
    dist.all_reduce_coalesced(tensors)
    assert [tensor.reshape(-1).tolist() for tensor in tensors] == [[2.0] * 2, [4.0] * 3]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert [float(tensor.sum()) for tensor in tensors] == [8.0, 24.0]


def check_groups_of_some_ranks() -> None:
    second = dist.new_group([1])
    assert dist.get_rank(second) == (0 if RANK == 1 else -1)
    values = pullback.ones(1)
    if RANK == 1:
        dist.all_reduce(values, group=second)
        assert dist.get_process_group_ranks(second) == [1]
        assert dist.get_global_rank(second, 0) == 1
        dist.destroy_process_group(second)
    else:
        with pytest.warns(UserWarning, match="does not belong to the given group"):
            assert dist.all_reduce(values, group=second) is None
    own, every = dist.new_subgroups(1)
    assert dist.get_process_group_ranks(own) == [RANK]
    assert len(every) == 2
    assert values.tolist() == [1.0]


def check_differing_shapes_and_dtypes_raise_on_every_rank() -> None:
    checked = dist.new_group()
    with pytest.raises(dist.DistBackendError, match=r"Detected mismatch.*float32 \[2\].*float32 \[3\]"):
        dist.all_reduce(pullback.ones(2 + RANK), group=checked)
    with pytest.raises(dist.DistBackendError, match=r"Detected mismatch.*int32.*int64"):
        dist.all_reduce(pullback.ones(2, dtype=pullback.int32 if RANK == 0 else pullback.int64), group=checked)
    with pytest.raises(dist.DistBackendError, match=r"Detected mismatch.*broadcast.*all_reduce"):
        (dist.all_reduce(pullback.ones(2), group=checked) if RANK else dist.broadcast(pullback.ones(2), 0, checked))


def check_the_same_bits_every_time() -> None:
    pullback.manual_seed(RANK)
    values = pullback.randn(10_000)
    first = values.clone()
    dist.all_reduce(first)
    for _ in range(5):
        again = values.clone()
        dist.all_reduce(again)
        assert pullback.equal(first, again)
    both = pullback.zeros(2, 10_000)
    dist.all_gather_into_tensor(both, first)
    assert pullback.equal(both[0], both[1])


def check_groups_can_be_begun_anew() -> None:
    world = dist.group.WORLD
    assert world is not None
    name, size = dist.get_backend(), dist.get_world_size()
    with pytest.raises(ValueError, match="trying to initialize the default process group twice"):
        dist.init_process_group("mpi")
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("mpi", timeout=world.timeout)
    assert (dist.get_backend(), dist.get_world_size()) == (name, size)


def check_a_wrong_place_in_the_world_is_refused() -> None:
    world = dist.group.WORLD
    assert world is not None
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="says"):
        dist.init_process_group("mpi", rank=RANK + 1)
    dist.init_process_group("mpi", timeout=world.timeout)


def check_sparse_tensors_are_summed() -> None:
    for async_op in (False, True):
        values = pullback.sparse_coo_tensor(pullback.tensor([[0, RANK + 1, 0]]), pullback.tensor([1.0, 2.0, 3.0]), (4,))
        work = dist.all_reduce(values, async_op=async_op)
        assert work is None or work.wait()
        assert values.is_coalesced()
        assert values.indices().tolist() == [[0, 1, 2]]
        assert values.values().tolist() == [8, 2, 2]
    nothing = pullback.sparse_coo_tensor(pullback.zeros(2, 0, dtype=pullback.int64), pullback.zeros(0), (3, 4))
    dist.all_reduce(nothing)
    assert nothing._nnz() == 0
    with pytest.raises(RuntimeError, match="allreduce of sparse tensors only works with"):
        dist.all_reduce(values, dist.ReduceOp.MAX)
