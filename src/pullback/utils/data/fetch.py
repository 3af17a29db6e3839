"""Fetching: from the indices of one batch to the collated batch, in whichever process that happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pullback.utils.data.dataset import IterableDataset

__all__ = ["DatasetKind", "Fetcher", "IterableDatasetFetcher", "MapDatasetFetcher"]


class DatasetKind:
    """Whether a dataset is indexed or iterated."""

    Map = 0
    Iterable = 1

    @staticmethod
    def of(dataset: Any) -> int:
        """Return the kind of `dataset`."""
        return DatasetKind.Iterable if isinstance(dataset, IterableDataset) else DatasetKind.Map

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> Fetcher:
        """Make the fetcher for a kind of dataset."""
        fetcher = MapDatasetFetcher if kind == DatasetKind.Map else IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class Fetcher:
    """Makes batches of one dataset; `auto_collation` says whether an index is one sample's or a list of them."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the collated batch for an index, or raise StopIteration at the end of a stream."""
        raise NotImplementedError


class MapDatasetFetcher(Fetcher):
    """Looks samples up by index, a whole batch at once where the dataset offers `__getitems__`."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        fetch_many = getattr(self.dataset, "__getitems__", None)
        if fetch_many:
            return self.collate_fn(fetch_many(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class IterableDatasetFetcher(Fetcher):
    """Takes the next samples of a stream: an index only says how many."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = list(itertools.islice(self.dataset_iter, len(possibly_batched_index)))
        self.ended = len(data) < len(possibly_batched_index)
        if not data or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(data)
