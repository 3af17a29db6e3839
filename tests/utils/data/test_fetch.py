"""Batches of tensor datasets, gathered at once, are those of samples fetched one by one."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.utils.data import DataLoader, Subset, TensorDataset, default_collate


def one_by_one(samples: list[Any]) -> Any:
    return default_collate(samples)


def make_dataset() -> TensorDataset:
    rows: Any = pullback.arange(24.0)
    return TensorDataset(rows.reshape(6, 2, 2), pullback.arange(6), pullback.ones(6, 0))


def load(dataset: Any, collate_fn: Any, batches: list[Any]) -> Any:
    loaded = DataLoader(dataset, batch_sampler=batches, collate_fn=collate_fn)
    return [[(column.tolist(), column.shape, column.stride(), column.dtype) for column in batch] for batch in loaded]


@pytest.mark.parametrize("batches", [[[0, 1]], [[5], [3, 3, 0]], [[-1, 2]], [[pullback.tensor(4), 1]], [[True, True]]])
def test_rows_gathered_at_once_are_the_rows(batches: list[Any]) -> None:
    dataset = make_dataset()
    assert load(dataset, None, batches) == load(dataset, one_by_one, batches)


def test_rows_of_nested_subsets_are_gathered() -> None:
    dataset = Subset(Subset(make_dataset(), [5, 3, 1]), [2, 0])
    assert load(dataset, None, [[0, 1], [1]]) == load(dataset, one_by_one, [[0, 1], [1]])


def test_a_batch_does_not_share_memory_with_the_dataset() -> None:
    dataset = make_dataset()
    ((batch, _, _),) = DataLoader(dataset, batch_size=6)
    batch.zero_()
    assert dataset.tensors[0].sum().item() == sum(range(24))


def test_a_subclass_that_changes_its_samples_is_asked_for_them() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return tuple(column * 2 for column in super().__getitem__(index))

    ((batch,),) = DataLoader(Doubled(pullback.ones(2)), batch_size=2)
    assert batch.tolist() == [2.0, 2.0]


def test_gradients_flow_to_the_rows() -> None:
    rows = pullback.ones(3, requires_grad=True)
    ((batch,),) = DataLoader(TensorDataset(rows), batch_size=3)
    batch.sum().backward()
    assert rows.grad is not None
    assert rows.grad.tolist() == [1.0, 1.0, 1.0]


def test_an_index_beyond_the_end_is_an_index_error() -> None:
    with pytest.raises(IndexError, match=r"out of bounds|out of range"):
        load(make_dataset(), None, [[6]])
