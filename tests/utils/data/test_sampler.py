"""Samplers: orders of indices and their arguments."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded(seed: int = 0) -> Any:
    return pullback.Generator().manual_seed(seed)


def test_a_sampler_without_iter_says_so() -> None:
    with pytest.raises(NotImplementedError):
        iter(Sampler[int]())


def test_sequential_sampler_counts() -> None:
    sampler = SequentialSampler("abc")
    assert (list(sampler), len(sampler)) == ([0, 1, 2], 3)


def test_random_sampler_visits_every_index_once() -> None:
    assert sorted(RandomSampler(range(20))) == list(range(20))


def test_random_sampler_repeats_with_the_seed() -> None:
    assert list(RandomSampler(range(20), generator=seeded())) == list(RandomSampler(range(20), generator=seeded()))


def test_random_sampler_orders_follow_the_global_seed() -> None:
    pullback.manual_seed(3)
    first, second = list(RandomSampler(range(20))), list(RandomSampler(range(20)))
    pullback.manual_seed(3)
    assert first == list(RandomSampler(range(20)))
    assert first != second


def test_random_sampler_goes_round_again_for_more_samples() -> None:
    drawn = list(RandomSampler(range(4), num_samples=10, generator=seeded()))
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]
    assert len(drawn) == 10


def test_random_sampler_with_replacement_draws_the_number_asked_for() -> None:
    sampler = RandomSampler(range(3), replacement=True, num_samples=70, generator=seeded())
    assert (len(list(sampler)), len(sampler), set(sampler)) == (70, 70, {0, 1, 2})


def test_random_sampler_follows_a_dataset_that_grows() -> None:
    data = [1, 2]
    sampler = RandomSampler(data)
    data.append(3)
    assert sorted(sampler) == [0, 1, 2]


@pytest.mark.parametrize("number", [0, -1, 2.5, True])
def test_random_sampler_refuses_a_wrong_number(number: Any) -> None:
    with pytest.raises(ValueError, match=f"positive integer value, but got num_samples={number}"):
        RandomSampler(range(3), num_samples=number)


def test_random_sampler_refuses_an_empty_dataset() -> None:
    with pytest.raises(ValueError, match="num_samples=0"):
        RandomSampler([])


def test_random_sampler_refuses_a_replacement_that_is_no_boolean() -> None:
    with pytest.raises(TypeError, match="replacement should be a boolean value, but got replacement=3"):
        RandomSampler(range(3), replacement=3)  # type: ignore[arg-type]


def test_subset_random_sampler_permutes_its_indices() -> None:
    sampler = SubsetRandomSampler([5, 7, 9], generator=seeded())
    assert (sorted(sampler), len(sampler)) == ([5, 7, 9], 3)


def test_weighted_random_sampler_never_draws_weight_zero() -> None:
    assert set(WeightedRandomSampler([0.0, 1.0, 3.0], 50, generator=seeded())) == {1, 2}


@pytest.mark.parametrize(
    ("weights", "number", "replacement", "message"),
    [
        ([1.0], 0, True, "num_samples should be a positive integer value, but got num_samples=0"),
        ([1.0], 1, 3, "replacement should be a boolean value, but got replacement=3"),
        ([[1.0, 2.0]], 1, True, r"weights should be a 1d sequence but given weights have shape \(1, 2\)"),
    ],
)
def test_weighted_random_sampler_refuses(weights: Any, number: int, replacement: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WeightedRandomSampler(weights, number, replacement)


@pytest.mark.parametrize(("drop_last", "expected"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_batch_sampler_groups(drop_last: bool, expected: list[list[int]]) -> None:
    sampler = BatchSampler(SequentialSampler(range(5)), 2, drop_last)
    assert (list(sampler), len(sampler)) == (expected, len(expected))


def test_batch_sampler_takes_no_more_than_it_gives() -> None:
    indices = iter(range(5))
    next(iter(BatchSampler(indices, 2, False)))
    assert next(indices) == 2


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_batch_sampler_refuses_a_wrong_size(size: Any) -> None:
    with pytest.raises(ValueError, match=f"batch_size should be a positive integer value, but got batch_size={size}"):
        BatchSampler(range(3), size, False)


def test_batch_sampler_refuses_a_drop_last_that_is_no_boolean() -> None:
    with pytest.raises(ValueError, match="drop_last should be a boolean value, but got drop_last=1"):
        BatchSampler(range(3), 2, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("drop_last", "length"), [(False, 4), (True, 3)])
def test_distributed_samplers_share_the_dataset(drop_last: bool, length: int) -> None:
    parts = [list(DistributedSampler(range(11), 3, rank, drop_last=drop_last)) for rank in range(3)]
    assert [len(part) for part in parts] == [length] * 3
    assert len({index for part in parts for index in part}) == (9 if drop_last else 11)


def test_distributed_sampler_repeats_samples_of_a_tiny_dataset() -> None:
    assert list(DistributedSampler([7], 3, 1, shuffle=False)) == [0]


def test_distributed_sampler_changes_order_with_the_epoch() -> None:
    sampler = DistributedSampler(range(30), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert first != list(sampler)


@pytest.mark.parametrize("rank", [3, -1])
def test_distributed_sampler_refuses_a_wrong_rank(rank: int) -> None:
    with pytest.raises(ValueError, match=rf"Invalid rank {rank}, rank should be in the interval \[0, 2\]"):
        DistributedSampler(range(3), 3, rank)


def test_distributed_sampler_needs_replicas_and_rank() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(range(3))
