"""Sorting and what is read off a sorted dimension. NaN counts as the largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import in_memory_order, is_at_hand, memory_order
from pullback.backend.dtype import is_float_or_complex
from pullback.checks import checked
from pullback.kernels.accumulation import add_up
from pullback.kernels.indexing import gather
from pullback.native import by_device, native
from pullback.typing import Array, Dim


@by_device
def sort(input: Array, dim: Dim = -1, descending: bool = False) -> tuple[Array, Array]:
    """The elements in order along `dim`, and the indices they had. Equal elements keep their order."""
    return _sorted(input, dim, descending)


@by_device
def sort_stable(input: Array, stable: bool, dim: Dim = -1, descending: bool = False) -> tuple[Array, Array]:
    """As `sort`, under the name of the overload that promises stability."""
    return _sorted(input, dim, descending)


@by_device
def argsort(input: Array, dim: Dim = -1, descending: bool = False) -> Array:
    """The indices that sort along `dim`."""
    order = order_along(input, dim, descending)
    return order if input.flags.c_contiguous else _in_layout(order, input)


def _sorted(input: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    indices = order_along(input, dim, descending)
    values = gather(input, dim, indices)
    return (values, indices) if input.flags.c_contiguous else (_in_layout(values, input), _in_layout(indices, input))


def _in_layout(values: Array, pattern: Array) -> Array:
    """The values with strides in the order of those of `pattern`."""
    return in_memory_order(values, memory_order(pattern))


@by_device
def order_along(input: Array, dim: int, descending: bool) -> Array:
    """The stable order of the elements along `dim`."""
    if input.ndim == 0:
        return np.zeros((), np.int64)
    values = _sortable(input)
    if not descending:
        return np.argsort(values, axis=dim, kind="stable")
    reverse = (*(slice(None),) * dim, slice(None, None, -1))
    backwards = np.argsort(values[reverse], axis=dim, kind="stable")[reverse]
    return input.shape[dim] - 1 - backwards


def _sortable(input: Array) -> Array:
    """The array in a dtype that NumPy sorts with NaN last."""
    return input.astype(np.float32) if input.dtype.kind == "V" else input


@native
@checked
def topk(input: Array, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    """The `k` largest (or smallest) elements along `dim` in order, and their indices."""
    size = input.shape[dim] if input.ndim else 1
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    lead = (slice(None),) * dim
    values = _sortable(input)
    if k and size > 4 * k and not (is_float_or_complex(values.dtype) and np.isnan(values).any()):
        indices = (
            _largest(values, k, dim) if largest else np.argpartition(values, k - 1, axis=dim)[(*lead, slice(0, k))]
        )
        indices = np.sort(indices, axis=dim)
        inner = order_along(gather(values, dim, indices), dim, largest)
        indices = np.take_along_axis(indices, inner, dim)
    else:
        indices = order_along(values, dim, largest)[(*lead, slice(0, k))]
    return np.take_along_axis(input, indices, dim), np.ascontiguousarray(indices)


def _largest(values: Array, k: int, dim: int) -> Array:
    lead = (slice(None),) * dim
    return np.argpartition(values, values.shape[dim] - k, axis=dim)[(*lead, slice(-k, None))]


@by_device
@checked
def kthvalue(input: Array, k: int, dim: Dim = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The `k`-th smallest element along `dim`, counted from 1, and its index."""
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    if is_float_or_complex(input.dtype) and (not is_at_hand(input) or np.isnan(input).any()):
        indices = order_along(input, dim, False)[(*(slice(None),) * dim, slice(k - 1, k))]
    else:
        indices = _index_of_rank(_sortable(input), k - 1, dim)
    return _reduced(input, indices, dim, keepdim)


def _reduced(input: Array, indices: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    values = gather(input, dim, indices)
    return (values, indices) if keepdim else (np.squeeze(values, dim), np.squeeze(indices, dim))


@by_device
@checked
def median_all(input: Array) -> Array:
    """The lower of the middle elements, NaN if there is one."""
    return _median_of(input, ignore_nan=False)


@by_device
@checked
def nanmedian_all(input: Array) -> Array:
    """The lower of the middle elements that are numbers."""
    return _median_of(input, ignore_nan=True)


def _median_of(input: Array, *, ignore_nan: bool) -> Any:
    flat: Array = np.ravel(input)
    if flat.size == 0:
        return np.full((), np.nan, input.dtype) if is_float_or_complex(input.dtype) else np.iinfo(input.dtype).min
    count = flat.size
    if is_float_or_complex(input.dtype):
        missing = int(np.count_nonzero(np.isnan(flat)))
        if (missing and not ignore_nan) or missing == count:
            return np.full((), np.nan, input.dtype)
        count -= missing
    return np.partition(_sortable(flat), (count - 1) // 2)[(count - 1) // 2].astype(input.dtype)


@by_device
def median_dim(input: Array, dim: Dim, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower of the middle elements along `dim`, and its index; the first NaN if there is one."""
    return _median_along(input, dim, keepdim, ignore_nan=False)


@by_device
def nanmedian_dim(input: Array, dim: Dim, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower of the middle elements along `dim` that are numbers, and its index."""
    return _median_along(input, dim, keepdim, ignore_nan=True)


def _median_along(input: Array, dim: int, keepdim: bool, *, ignore_nan: bool) -> tuple[Array, Array]:
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    size = input.shape[dim]
    if not (is_float_or_complex(input.dtype) and np.isnan(input).any()):
        return _reduced(input, _index_of_rank(_sortable(input), (size - 1) // 2, dim), dim, keepdim)
    order = order_along(input, dim, False)
    middle = np.full([1 if i == dim else n for i, n in enumerate(input.shape)], (size - 1) // 2)
    if is_float_or_complex(input.dtype):
        missing = np.count_nonzero(np.isnan(input), axis=dim, keepdims=True)
        if ignore_nan:
            middle = np.maximum(size - missing - 1, 0) // 2
        else:
            middle = np.where(missing > 0, size - missing, middle)
    return _reduced(input, np.take_along_axis(order, middle, dim), dim, keepdim)


_FEW = 2048
"""Elements that are sorted in less time than it takes to look for one of them."""


def _index_of_rank(values: Array, rank: int, dim: int) -> Array:
    """The index that stands at `rank` in the stable order, found without sorting."""
    lead = (slice(None),) * dim
    if values.size <= _FEW:
        return np.argsort(values, axis=dim, kind="stable")[(*lead, slice(rank, rank + 1))]
    chosen = np.partition(values, rank, axis=dim)[(*lead, slice(rank, rank + 1))]
    before = add_up(values < chosen, dim, True)
    equal = values == chosen
    seen = np.cumsum(equal, axis=dim, dtype=np.int32)
    return np.argmax(equal & (seen == rank - before + 1), axis=dim, keepdims=True)


@by_device
@checked
def mode(input: Array, dim: Dim = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The most frequent element along `dim` (the smallest of several), and the index of its last occurrence.

    The results lack `dim`, or have it with size 1 (`keepdim`).
    """
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    order = np.moveaxis(order_along(input, dim, False), dim, -1)
    values = np.take_along_axis(np.moveaxis(_sortable(input), dim, -1), order, -1)
    places = np.arange(values.shape[-1])
    starts = np.ones(values.shape, bool)
    starts[..., 1:] = values[..., 1:] != values[..., :-1]
    lengths = places - np.maximum.accumulate(np.where(starts, places, 0), axis=-1)
    longest = np.argmax(lengths, axis=-1)[..., None]
    indices = np.moveaxis(np.take_along_axis(order, longest, -1), -1, dim)
    return _reduced(input, indices, dim, keepdim)
