"""SparseArray: rows of values at indices, as the gradient of an embedding is. Not a general sparse algebra.

It answers what the engine asks of a gradient (shape, dtype, addition) and turns into a dense array for anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from pullback.typing import Array, DType, Shape


class SparseArray:
    """Values at index tuples of the leading dimensions; indices may repeat, and then their values add up."""

    __slots__ = ("coalesced", "indices", "shape", "values")

    def __init__(self, indices: Array, values: Array, shape: Shape, coalesced: bool = False) -> None:
        self.indices = indices
        self.values = values
        self.shape = tuple(shape)
        self.coalesced = coalesced

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def sparse_dim(self) -> int:
        return int(self.indices.shape[0])

    def dense(self) -> Array:
        """The same numbers as a dense array."""
        table: Array = np.zeros(self.shape, self.values.dtype)
        np.add.at(table, tuple(self.indices), self.values)
        return table

    def merged_indices(self) -> tuple[Array, Array]:
        """Every index once, in order, and which of these each value has."""
        sizes = self.shape[: self.sparse_dim]
        flat = self._flat_indices() if self.indices.size else self.indices[0]
        unique, inverse = np.unique(flat, return_inverse=True)
        indices = np.stack(np.unravel_index(unique, sizes)) if unique.size else self.indices
        return indices.astype(self.indices.dtype), inverse.astype(np.int64)

    def _flat_indices(self) -> Array:
        """One number for each index, in the order of indices."""
        flat: Array = np.ravel_multi_index(tuple(self.indices), self.shape[: self.sparse_dim])
        return flat

    def indices_of_sum(self, other: SparseArray) -> tuple[Array, Array] | None:
        """The indices of a sum, and which of these each value of both tensors has; None where one is not in order.

        An index that stands k times in one tensor stands k times in the sum: its first value there meets the first one
        of the other tensor, and so on, as where PyTorch goes through both at once.
        """
        if not (self.indices.size and other.indices.size):
            return None
        flat = [self._flat_indices(), other._flat_indices()]
        if any((keys[1:] < keys[:-1]).any() for keys in flat):
            return None
        repeats = [np.arange(keys.size) - np.searchsorted(keys, keys) for keys in flat]
        width = max(int(times.max()) for times in repeats) + 1
        keys, inverse = np.unique(np.concatenate(flat) * width + np.concatenate(repeats), return_inverse=True)
        indices = np.stack(np.unravel_index(keys // width, self.shape[: self.sparse_dim]))
        return indices.astype(self.indices.dtype), inverse.astype(np.int64)

    def coalesce(self) -> SparseArray:
        """The same numbers with every index once, in order."""
        if self.coalesced:
            return self
        indices, inverse = self.merged_indices()
        values: Array = np.zeros((indices.shape[1], *self.values.shape[1:]), self.values.dtype)
        np.add.at(values, inverse, self.values)
        return SparseArray(indices, values, self.shape, True)

    def starts(self, dim: int) -> Array:
        """Where the values of each row (`dim` 0) or column (1) begin, for indices in its order; at last, the end."""
        return np.searchsorted(self.indices[dim], np.arange(self.shape[dim] + 1)).astype(np.int64)

    def order_by_column(self) -> Array:
        """The positions of the values, column by column."""
        return np.argsort(self.indices[1], kind="stable")

    def indices_with_new_dim(self, dim: int) -> Array:
        """The indices where the tensor gets a new dimension of size one at `dim`."""
        return np.insert(self.indices, dim, 0, axis=0)

    def astype(self, dtype: DType) -> SparseArray:
        """The same numbers in another dtype."""
        return SparseArray(self.indices, self.values.astype(dtype), self.shape, self.coalesced)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SparseArray):
            indices = np.concatenate([self.indices, other.indices], 1)
            return SparseArray(indices, np.concatenate([self.values, other.values]), self.shape)
        return self.dense() + other

    def __radd__(self, other: Any) -> Any:
        return other + self.dense()

    # NumPy asks the other operand first only if that has no ufunc protocol of its own.
    __array_ufunc__ = None


def joined_indices(arrays: Sequence[SparseArray], dim: int) -> Array:
    """The indices of tensors that follow each other along a dimension."""
    starts = list(accumulate((array.shape[dim] for array in arrays), initial=0))
    indices: Array = np.concatenate([array.indices for array in arrays], 1)
    indices[dim] += np.repeat(starts[:-1], [array.indices.shape[1] for array in arrays])
    return indices


def checked_sparse_array(indices: Array, values: Array, shape: Shape, coalesced: bool) -> SparseArray:
    """An array of these parts; a ValueError says that they do not fit each other."""
    if indices.ndim != 2 or indices.dtype.kind != "i" or values.ndim == 0 or indices.shape[1] != values.shape[0]:
        raise ValueError("the indices of a sparse tensor do not fit its values")
    leading = indices.shape[0]
    if leading > len(shape) or values.shape[1:] != tuple(shape[leading:]):
        raise ValueError(f"the indices and values of a sparse tensor do not fit its size {list(shape)}")
    for row, size in zip(indices, shape, strict=False):
        if row.size and (row.min() < 0 or row.max() >= size):
            raise ValueError(f"an index of a sparse tensor lies outside of its size {list(shape)}")
    return SparseArray(indices, values, shape, coalesced)


def indices_of_starts(starts: Array, places: Array, shape: Shape, major: int) -> Array:
    """The indices of a matrix whose values lie row by row (`major` 0) or column by column (1)."""
    count = shape[major] if len(shape) == 2 else -1
    if starts.shape != (count + 1,) or places.ndim != 1 or starts.dtype.kind != "i" or places.dtype.kind != "i":
        raise ValueError("the indices of a sparse tensor do not fit its size")
    lengths = starts[1:] - starts[:-1]
    if starts[0] != 0 or starts[-1] != places.size or (lengths < 0).any():
        raise ValueError("the indices of a sparse tensor do not count its values")
    majors = np.repeat(np.arange(count), lengths)
    return np.stack([majors, places] if major == 0 else [places, majors])
