"""Datasets, their combinations, and splitting them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Squares(Dataset[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __getitem__(self, index: int) -> int:
        return index * index

    def __len__(self) -> int:
        return self.size


class Stream(IterableDataset[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size))

    def __len__(self) -> int:
        return self.size


class Batched(Dataset[int]):
    """Answers a whole batch at once, with one answer too few if asked to."""

    def __init__(self, short: bool = False) -> None:
        self.short = short

    def __getitem__(self, index: int) -> int:
        raise AssertionError("the batch should have been asked for at once")

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [10 * index for index in indices][int(self.short) :]

    def __len__(self) -> int:
        return 5


def test_a_dataset_without_getitem_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Subclasses of Dataset should implement __getitem__"):
        Dataset()[0]


def test_a_dataset_has_no_length_unless_it_defines_one() -> None:
    with pytest.raises(TypeError, match="has no len"):
        len(Dataset())  # type: ignore[arg-type]


def test_adding_datasets_concatenates_them() -> None:
    assert list(Squares(3) + Squares(2))[:5] == [0, 1, 4, 0, 1]  # type: ignore[call-overload]


def test_adding_streams_chains_them() -> None:
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]


def test_tensor_dataset_gives_rows() -> None:
    dataset = TensorDataset(pullback.tensor([[1.0, 2.0], [3.0, 4.0]]), pullback.tensor([5, 6]))
    features, label = dataset[1]
    assert (features.tolist(), label.item(), len(dataset)) == ([3.0, 4.0], 6, 2)


def test_tensor_dataset_refuses_different_lengths() -> None:
    with pytest.raises(AssertionError, match=r"Size mismatch between tensors: .*\[2, 3\]"):
        TensorDataset(pullback.zeros(2), pullback.zeros(3))


def test_stack_dataset_gives_tuples_or_dicts() -> None:
    assert StackDataset([1, 2], [3, 4])[1] == (2, 4)
    assert StackDataset(a=[1, 2], b=[3, 4])[0] == {"a": 1, "b": 3}


def test_stack_dataset_asks_for_batches_at_once_where_it_can() -> None:
    assert StackDataset(Batched(), Squares(5)).__getitems__([1, 3]) == [(10, 1), (30, 9)]


def test_stack_dataset_refuses_a_batch_of_the_wrong_size() -> None:
    with pytest.raises(ValueError, match=r"Nested dataset's output size mismatch. Expected 2, got 1"):
        StackDataset(a=Batched(short=True)).__getitems__([0, 1])


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "At least one dataset should be passed"),
        (([1],), {"a": [1]}, "both types are given"),
        (([1, 2], [1]), {}, "Size mismatch between datasets"),
    ],
)
def test_stack_dataset_refuses(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StackDataset(*args, **kwargs)


@pytest.mark.parametrize(("index", "expected"), [(0, 1), (2, 3), (-1, 3), (-3, 1)])
def test_concat_dataset_finds_the_part(index: int, expected: int) -> None:
    parts: Any = [[1, 2], [], [3]]
    assert ConcatDataset(parts)[index] == expected


def test_concat_dataset_refuses_an_index_below_its_length() -> None:
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        ConcatDataset([Squares(2)])[-3]


def test_concat_dataset_refuses_streams() -> None:
    with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
        ConcatDataset([Squares(1), Stream(1)])


def test_concat_dataset_refuses_nothing_at_all() -> None:
    with pytest.raises(AssertionError, match="datasets should not be an empty iterable"):
        ConcatDataset([])


def test_the_old_spelling_of_cumulative_sizes_warns() -> None:
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert ConcatDataset([Squares(2), Squares(3)]).cummulative_sizes == [2, 5]


def test_chain_dataset_sums_lengths() -> None:
    assert len(ChainDataset([Stream(2), Stream(3)])) == 5


def test_chain_dataset_refuses_what_is_not_a_stream() -> None:
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(ChainDataset([Squares(1)]))


def test_subset_maps_indices() -> None:
    subset = Subset(Squares(10), [3, 5])
    assert ([subset[0], subset[1]], len(subset), subset.__getitems__([1, 0])) == ([9, 25], 2, [25, 9])


def test_subset_of_a_batched_dataset_asks_for_batches() -> None:
    assert Subset(Batched(), [4, 2, 0]).__getitems__([0, 2]) == [40, 0]


def test_random_split_divides_all_samples() -> None:
    first, second = random_split(Squares(10), [3, 7], pullback.Generator().manual_seed(0))
    assert (len(first), len(second)) == (3, 7)
    assert sorted([*first.indices, *second.indices]) == list(range(10))


@pytest.mark.parametrize(
    ("fractions", "lengths"), [([0.5, 0.5], [5, 5]), ([0.33, 0.33, 0.34], [4, 3, 3]), ([0.1, 0.9], [1, 9])]
)
def test_random_split_by_fractions_deals_out_the_rest(fractions: list[float], lengths: list[int]) -> None:
    assert [len(part) for part in random_split(Squares(10), fractions)] == lengths


def test_random_split_refuses_lengths_that_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        random_split(Squares(10), [3, 5])


def test_random_split_refuses_fractions_outside_zero_to_one() -> None:
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(Squares(10), [-0.5, 1.5])


def test_random_split_warns_of_an_empty_part() -> None:
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(Squares(1), [0.5, 0.5])
