"""Finding and counting values: sorted search, sets of distinct values, histograms."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from pullback.checks import checked
from pullback.checks.elements import position_out_of_range, value_out_of_range
from pullback.native import by_device
from pullback.typing import Array


@by_device
def searchsorted(
    sorted_sequence: Array, input: Array, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Array | None = None,
) -> Array:  # fmt: skip
    """Where each value would be inserted into the last dimension of a sorted sequence."""
    if sorter is not None:
        if sorter.size and (int(sorter.min()) < 0 or int(sorter.max()) >= sorter.shape[-1]):
            raise position_out_of_range("torch.searchsorted(): sorter index out of range", RuntimeError)
        sorted_sequence = np.take_along_axis(sorted_sequence, sorter, -1)
    where: Literal["left", "right"] = "right" if right or side == "right" else "left"
    dtype = np.dtype(np.int32 if out_int32 else np.int64)
    if _has_nan(sorted_sequence) or _has_nan(input):
        return _search_by_halves(sorted_sequence, np.asarray(input), where).astype(dtype)
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, input, where).astype(dtype)
    return _search_rows(sorted_sequence, np.asarray(input), where).astype(dtype)


def _has_nan(values: Array) -> bool:
    return values.dtype.kind in "fV" and bool(np.isnan(values).any())


def _search_by_halves(rows: Array, values: Array, side: str) -> Array:
    """Binary search as PyTorch does it, to which a NaN is smaller than everything: for sequences that are not sorted."""
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, rows.shape[-1])
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, rows.shape[-1] - 1)
        found = rows[middle] if rows.ndim == 1 else np.take_along_axis(rows, middle, -1)
        later = ~(found >= values if side == "left" else found > values)
        low = np.where(open_ & later, middle + 1, low)
        high = np.where(open_ & ~later, middle, high)
    return low


def _search_rows(rows: Array, values: Array, side: str) -> Array:
    """Search each row for its own values: all rows at once, by counting smaller elements in the merged order."""
    length = rows.shape[-1]
    # A stable sort keeps equal elements in the order given: values first finds the left place, rows first the right.
    both = (values, rows) if side == "left" else (rows, values)
    merged = np.concatenate(both, axis=-1)
    order = np.argsort(merged, axis=-1, kind="stable")
    first = both[0].shape[-1]
    is_row = order >= first if side == "left" else order < first
    before = np.cumsum(is_row, axis=-1) - is_row
    places = np.empty(merged.shape, np.int64)
    np.put_along_axis(places, order, before, -1)
    part = places[..., :first] if side == "left" else places[..., length:]
    return np.ascontiguousarray(part)


@by_device
@checked
def unique(
    input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Array, Array, Array]:
    """The distinct values (or slices), in order; where each element went; how often each occurs."""
    if dim is not None:
        return _unique_slices(input, dim)
    flat = input.reshape(-1)
    if not return_inverse and not return_counts:
        unused: Array = np.empty(0, np.int64)
        ordered = np.sort(flat)  # NumPy's own unique hashes, which is slower
        return ordered[_starts_of_runs(ordered)], unused, unused
    found = np.unique(flat, return_inverse=True, return_counts=True, equal_nan=False)
    return found[0], found[1].reshape(input.shape).astype(np.int64), found[2].astype(np.int64)


def _starts_of_runs(rows: Array) -> Array:
    """Where a row differs from the one before it."""
    changed: Array = np.ones(rows.shape[0], np.bool_)
    changed[1:] = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    return changed


def _unique_slices(input: Array, dim: int) -> tuple[Array, Array, Array]:
    if input.shape[dim] == 0:
        empty: Array = np.empty(0, np.int64)
        return input, empty, empty
    found = np.unique(input, return_inverse=True, return_counts=True, axis=dim)
    slices = np.moveaxis(np.ascontiguousarray(np.moveaxis(found[0], dim, 0)), 0, dim)
    return slices, found[1].reshape(-1).astype(np.int64), found[2].astype(np.int64)


@by_device
@checked
def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Array, Array, Array]:
    """The values (or slices) without repetitions that follow each other; where each went; how long each run is."""
    rows = input.reshape(-1) if dim is None else np.moveaxis(input, dim, 0)
    count = rows.shape[0]
    if count == 0:
        empty: Array = np.empty(0, np.int64)
        return input if dim is not None else rows, np.empty(input.shape if dim is None else 0, np.int64), empty
    changed = _starts_of_runs(rows)
    starts = np.flatnonzero(changed)
    inverse = (np.cumsum(changed) - 1).astype(np.int64)
    counts: Array = np.diff(np.append(starts, count)).astype(np.int64)
    kept = np.ascontiguousarray(rows[changed])
    if dim is None:
        return kept, inverse.reshape(input.shape), counts
    return np.moveaxis(kept, 0, dim), inverse, counts


def bincount(input: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each non-negative integer occurs, or the sum of its weights."""
    if input.size and int(input.min()) < 0:
        raise value_out_of_range("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return np.bincount(input, minlength=minlength).astype(np.int64)
    made = np.bincount(input, weights, minlength)
    return made.astype(np.float32) if weights.dtype == np.float32 else made.astype(np.float64)


@by_device
@checked
def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """How many elements lie in each of `bins` equal intervals; elements outside are left out.

    The intervals divide [`min`, `max`], the last of which holds `max` too; where both are 0, the least and the greatest
    element take their place. The result is a vector of size `bins`, in the dtype of `input`.
    """
    values = input.reshape(-1).astype(np.float64)
    low, high = float(min), float(max)
    if low == high and values.size:
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise value_out_of_range(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    inside = values[(values >= low) & (values <= high)]
    places = _interval_of(inside, low, high, bins, input.dtype)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(input.dtype)


def _interval_of(values: Array, low: float, high: float, bins: int, dtype: Any) -> Array:
    """In which of the equal intervals values lie; those of 16 bits are rounded at each step, as PyTorch does."""
    if dtype.itemsize != 2:
        return ((values - low) * bins / (high - low)).astype(np.int64)
    start, width = np.asarray(low, dtype), np.asarray(np.asarray(high, dtype) - np.asarray(low, dtype), dtype)
    scaled = (values.astype(dtype) - start) * np.asarray(bins, dtype)
    return (scaled / width).astype(np.float32).astype(np.int64)


@by_device
@checked
def isin(elements: Array, test_elements: Array, assume_unique: bool = False, invert: bool = False) -> Array:
    """Whether each element is among the test elements."""
    return np.asarray(np.isin(elements, test_elements, invert=invert))


@by_device
def as_value(value: Any, dtype: Any) -> Array:
    """A Python number to search for."""
    return np.asarray(value, dtype if dtype.kind == "f" and not isinstance(value, complex) else None)
