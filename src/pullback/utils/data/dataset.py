"""Datasets: samples by position (`Dataset`) or as a stream (`IterableDataset`), and combinations of them.

A dataset knows nothing of batches, order or processes; see `sampler.py` and `dataloader.py` for those.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pullback
from pullback.modes.user_warnings import warn_user

if TYPE_CHECKING:
    from pullback.backend.random import Generator
    from pullback.tensor.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """A collection of samples indexed by key; subclasses define `__getitem__`, and `__len__` where there is a length.

    A subclass may also define `__getitems__(indices)`, which returns the list of samples of a whole batch at once.
    There is no default `__len__` on purpose: `len()` of a dataset without one is a TypeError.
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[_T_co]) -> Dataset[_T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """A stream of samples: subclasses define `__iter__`.

    Every worker process of a `DataLoader` iterates its own copy, so without a division of labour by `get_worker_info`
    each sample arrives once per worker.
    """

    def __add__(self, other: Dataset[_T_co]) -> ChainDataset[_T_co]:
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """The rows of tensors that agree in their first size.

    >>> dataset = TensorDataset(pullback.tensor([1.0, 2.0]), pullback.tensor([3, 4]))
    >>> len(dataset), [value.item() for value in dataset[1]]
    (2, [2.0, 4])
    """

    tensors: tuple[Any, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            sizes = [tensor.size(0) for tensor in tensors]
            raise AssertionError(f"Size mismatch between tensors: their first dimensions are {sizes}, not all equal.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Datasets side by side: sample `i` is the tuple (or, by keyword, the dict) of their samples `i`.

    >>> StackDataset(image=["a", "b"], label=[0, 1])[1]
    {'image': 'b', 'label': 1}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        sizes = [len(dataset) for dataset in self._members()]
        if len(set(sizes)) > 1:
            raise ValueError(f"Size mismatch between datasets: their lengths are {sizes}, not all equal.")
        self._length = sizes[0]

    def _members(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _assemble(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._assemble([dataset[index] for dataset in self._members()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [self._column(dataset, indices) for dataset in self._members()]
        return [self._assemble(parts) for parts in zip(*columns, strict=True)]

    @staticmethod
    def _column(dataset: Any, indices: list[Any]) -> Sequence[Any]:
        fetch_many = _batched_getter(dataset)
        if fetch_many is None:
            return [dataset[index] for index in indices]
        items = fetch_many(indices)
        if len(items) != len(indices):
            raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
        return items

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one after another.

    >>> ConcatDataset([[1, 2], [3]])[2]
    3
    """

    datasets: list[Dataset[_T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Sized]) -> list[int]:
        """Return the running totals of the lengths."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        for position, dataset in enumerate(self.datasets):
            if isinstance(dataset, IterableDataset):
                raise AssertionError(
                    f"ConcatDataset does not support IterableDataset (number {position} is one): use ChainDataset."
                )
        self.cumulative_sizes = self.cumsum(cast("list[Sized]", self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(
                    f"absolute value of index should not exceed dataset length: got index {idx} for length {len(self)}."
                )
            idx += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][idx - start]

    @property
    def cummulative_sizes(self) -> list[int]:
        warn_user("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[_T_co]):
    """Iterable datasets one after another, each started when the one before it ends.

    `datasets` are IterableDatasets; a length is there if all of them have one.
    """

    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[IterableDataset[_T_co]]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(
                    f"ChainDataset only supports IterableDataset, but got {type(dataset).__name__}: "
                    "datasets with indices are joined by ConcatDataset."
                )
            yield dataset

    def __iter__(self) -> Iterator[_T_co]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(cast(Sized, dataset)) for dataset in self._streams())


class Subset(Dataset[_T_co]):
    """The samples of a dataset at the given indices, in that order.

    Its length is that of `indices`.

    >>> from pullback.utils.data import Subset
    >>> list(Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    dataset: Dataset[_T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[position] for position in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[_T_co]:
        chosen = [self.indices[position] for position in indices]
        fetch_many = _batched_getter(self.dataset)
        if fetch_many is not None:
            return cast("list[_T_co]", fetch_many(chosen))
        return [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def _batched_getter(dataset: Any) -> Callable[[list[Any]], Sequence[Any]] | None:
    """Return the dataset's `__getitems__`, or None if it has none (or has switched it off with None)."""
    return getattr(dataset, "__getitems__", None) or None


def random_split(
    dataset: Dataset[_T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[_T]]:
    """Split a dataset into disjoint random subsets of the given lengths, or fractions that sum to 1.

    With fractions each length is rounded down, and what is left is dealt one each from the first subset on.

    >>> pieces = random_split(range(10), [0.3, 0.7], pullback.Generator().manual_seed(0))
    >>> [len(piece) for piece in pieces]
    [3, 7]
    """
    total = len(cast(Sized, dataset))
    counts = _lengths_of_fractions(lengths, total) if _are_fractions(lengths) else list(lengths)
    for position, count in enumerate(counts):
        if count == 0:
            warn_user(f"Length of split at index {position} is 0. This might result in an empty dataset.")
    if sum(counts) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"The lengths {list(lengths)} sum to {sum(counts)}, the dataset has {total} samples."
        )
    order: list[int] = pullback.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(int(count) for count in counts)
    return [Subset(dataset, order[end - int(count) : end]) for end, count in zip(ends, counts, strict=True)]


def _are_fractions(lengths: Sequence[int | float]) -> bool:
    return math.isclose(sum(lengths), 1) and sum(lengths) <= 1


def _lengths_of_fractions(fractions: Sequence[float], total: int) -> list[int]:
    for position, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1: got {fraction}")
    counts = [math.floor(total * fraction) for fraction in fractions]
    for position in range(total - sum(counts)):
        counts[position % len(counts)] += 1
    return counts
