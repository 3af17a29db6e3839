"""DataLoader in one process: batches, arguments, attributes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Stream(IterableDataset[int]):
    def __init__(self, size: int, claimed: int | None = None) -> None:
        self.size = size
        self.claimed = claimed

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size))

    def __len__(self) -> int:
        if self.claimed is None:
            raise TypeError("no length")
        return self.claimed


def make(dataset: Any, *args: Any, **kwargs: Any) -> DataLoader[Any]:
    return DataLoader(dataset, *args, **kwargs)


def batches(*args: Any, **kwargs: Any) -> list[Any]:
    return [batch.tolist() for batch in make(*args, **kwargs)]


def test_batches_come_in_order() -> None:
    assert batches(range(5), batch_size=2) == [[0, 1], [2, 3], [4]]


def test_drop_last_leaves_the_short_batch_out() -> None:
    assert batches(range(5), batch_size=2, drop_last=True) == [[0, 1], [2, 3]]


def test_shuffling_is_repeatable_and_complete() -> None:
    pullback.manual_seed(1)
    first = batches(range(9), batch_size=2, shuffle=True)
    pullback.manual_seed(1)
    assert first == batches(range(9), batch_size=2, shuffle=True)
    assert sorted(index for batch in first for index in batch) == list(range(9))


def test_every_epoch_has_another_order() -> None:
    loader = make(range(20), shuffle=True)
    assert [batch.item() for batch in loader] != [batch.item() for batch in loader]


def test_no_batch_size_gives_single_converted_samples() -> None:
    assert list(make([1, "a"], batch_size=None)) == [1, "a"]


def test_a_sampler_decides_the_order() -> None:
    assert batches(range(5), batch_size=2, sampler=[4, 0, 2]) == [[4, 0], [2]]


def test_a_batch_sampler_decides_the_batches() -> None:
    assert batches(range(5), batch_sampler=[[4], [0, 1, 2]]) == [[4], [0, 1, 2]]


def test_a_collate_function_replaces_the_default() -> None:
    assert list(make(range(3), batch_size=2, collate_fn=sum)) == [1, 2]


def test_samples_of_tensors_and_labels() -> None:
    dataset = TensorDataset(pullback.arange(6.0).reshape(3, 2), pullback.tensor([7, 8, 9]))
    features, labels = next(iter(DataLoader(dataset, batch_size=2)))
    assert (features.tolist(), labels.tolist()) == ([[0.0, 1.0], [2.0, 3.0]], [7, 8])


def test_a_batch_is_fetched_at_once_where_the_dataset_offers_it() -> None:
    class Batched(Dataset[Any]):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [10 * index for index in indices]

        def __len__(self) -> int:
            return 3

    assert batches(Batched(), batch_size=2) == [[0, 10], [20]]
    assert batches(Subset(Batched(), [2, 1]), batch_size=2) == [[20, 10]]


@pytest.mark.parametrize(("drop_last", "expected"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_a_stream_is_cut_into_batches(drop_last: bool, expected: list[list[int]]) -> None:
    assert batches(Stream(5), batch_size=2, drop_last=drop_last) == expected


def test_a_stream_without_batches() -> None:
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "length"),
    [({}, 5), ({"batch_size": 2}, 3), ({"batch_size": 2, "drop_last": True}, 2), ({"batch_size": None}, 5)],
)
def test_length_counts_batches(options: dict[str, Any], length: int) -> None:
    assert len(make(range(5), **options)) == length
    assert len(DataLoader(Stream(5, claimed=5), **options)) == length


def test_a_stream_longer_than_it_claims_is_warned_of() -> None:
    loader = DataLoader(Stream(3, claimed=2))
    assert len(loader) == 2
    with pytest.warns(UserWarning, match=r"was reported to be 2 \(when accessing len\(dataloader\)\), but 3 samples"):
        list(loader)


def test_an_error_in_the_dataset_reaches_the_user_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        list(make(range(3), collate_fn=lambda batch: 1 / 0))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative; use num_workers=0"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
        ({"num_workers": 1, "prefetch_factor": -2}, ValueError, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [1]}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_size": 2, "batch_sampler": [[1]]}, ValueError, "batch_sampler option is mutually exclusive with"),
        ({"drop_last": True, "batch_sampler": [[1]]}, ValueError, "batch_sampler option is mutually exclusive with"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process loading"),
        ({"num_workers": 1, "multiprocessing_context": "x"}, ValueError, "should specify a valid start method in"),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "should be a valid context object or a string"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(range(3), **options)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"shuffle": True}, "shuffle"), ({"sampler": [1]}, "sampler"), ({"batch_sampler": [[1]]}, "batch_sampler")],
)
def test_a_stream_cannot_be_ordered(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"DataLoader with IterableDataset: expected unspecified {name} option"):
        DataLoader(Stream(3), **options)


@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)
def test_what_shapes_the_batches_is_fixed(name: str) -> None:
    loader = make(range(3))
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
        setattr(loader, name, 1)


def test_a_timeout_needs_workers() -> None:
    with pytest.raises(AssertionError, match="requires timeout == 0"):
        iter(make(range(3), timeout=1))


def test_more_workers_than_processors_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="This DataLoader will create 100000 worker processes in total"):
        make(range(3), num_workers=100000)


def test_pinned_memory_is_accepted_and_explained() -> None:
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert batches(range(2), pin_memory=True) == [[0], [1]]


def test_a_generator_is_the_only_source_of_randomness() -> None:
    pullback.manual_seed(0)
    before = pullback.get_rng_state().tolist()
    list(make(range(3), shuffle=True, generator=pullback.Generator()))
    assert pullback.get_rng_state().tolist() == before


def test_a_loader_can_be_subclassed_and_subscripted() -> None:
    class Named(DataLoader[int]):
        def __init__(self, dataset: Any, name: str) -> None:
            super().__init__(dataset)
            self.name = name

    assert (Named(range(2), "train").name, len(Named(range(2), "train"))) == ("train", 2)


def test_a_loader_can_be_pickled_but_its_iterator_cannot() -> None:
    loader = pickle.loads(pickle.dumps(make(range(3), batch_size=2)))
    assert [batch.tolist() for batch in loader] == [[0, 1], [2]]
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(loader))
