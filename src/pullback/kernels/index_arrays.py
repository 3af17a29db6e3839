"""Positions as arrays: checking them, turning them into flat ones, and adding at repeated ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.checks.elements import position_out_of_range
from pullback.native import by_device
from pullback.typing import Array, Shape


def normalized(positions: Array, size: int, dim: int) -> Array:
    """Positions of a dimension of `size`, each from -size to size - 1, in an integer type that NumPy indexes with."""
    check_index(positions, size, dim, negative=True)
    return positions


def without_repetition(index: Array) -> Array:
    """The same numbers, each as often as it lies in memory: 10^12 expanded ones are looked at in no time."""
    if 0 not in index.strides or index.size < 1 << 20:
        return index
    return index[tuple([slice(0, 1) if step == 0 else slice(None) for step in index.strides])]


def check_index(
    index: Array, size: int, dim: int | None, *, negative: bool = False, error: type[Exception] = IndexError
) -> None:
    """Refuse positions outside of a dimension of `size`."""
    index = without_repetition(index)
    if index.size == 0:
        return
    if not negative and index.dtype == np.int64:
        # Read as unsigned, a negative position is larger than any size: one pass over the index instead of two.
        if int(index.view(np.uint64).max()) < size:
            return
    elif int(index.max()) < size and int(index.min()) >= (-size if negative else 0):
        return
    low, high = int(index.min()), int(index.max())
    wrong = high if high >= size else low
    if dim is None:
        raise position_out_of_range(f"out of range: tried to access index {wrong} on a tensor of {size} elements.")
    raise position_out_of_range(f"index {wrong} is out of bounds for dimension {dim} with size {size}", error)


@by_device
def flat_positions(shape: Shape, dim: int, index: Array) -> Array:
    """Where each element of `index` points in a row-major array of `shape`: its own place, `dim` replaced by it."""
    if not shape or index.ndim == 0:
        return index.astype(np.int64)
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    flat = index if strides[dim] == 1 else index * strides[dim]
    for d, size in enumerate(index.shape):
        if d != dim and size > 1:
            steps: Array = np.arange(size) * strides[d]
            flat = flat + steps.reshape((size,) + (1,) * (index.ndim - 1 - d))
    return flat


@by_device
def add_at(target: Array, index: tuple[Any, ...], values: Array) -> None:
    """target[index] += values, where repeated positions add up. `target` is row-major and owned by the caller.

    NumPy's `add.at` is fast in one dimension only (2 ns an element; over rows 10), so positions are made flat.
    """
    if not target.size or not np.size(values):
        return
    if target.ndim == 1 and len(index) == 1:
        np.add.at(target, index[0].reshape(-1), _flat_values(values, index[0].shape, target.dtype))
        return
    places = np.arange(target.size).reshape(target.shape)[index]
    np.add.at(target.reshape(-1), places.reshape(-1), _flat_values(values, places.shape, target.dtype))


def _flat_values(values: Array, shape: Shape, dtype: Any) -> Array:
    values = np.asarray(values)
    if values.shape != shape:
        values = np.broadcast_to(values, shape)
    return np.ascontiguousarray(values.reshape(-1), dtype)


def broadcast_shape(*shapes: Shape) -> Shape:
    """The common shape of tensors of these shapes."""
    common: Shape = np.broadcast_shapes(*[tuple(s) for s in shapes])
    return common


@by_device
def strided_positions(size: Shape, stride: Shape, offset: int) -> Array:
    """Where the elements of a strided tensor lie in its storage, in row-major order."""
    positions: Array = np.full((), offset, np.int64)
    for length, step in zip(size, stride, strict=True):
        positions = positions[..., None] + np.arange(length) * step
    return positions.reshape(-1)
