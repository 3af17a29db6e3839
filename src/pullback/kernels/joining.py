"""Putting tensors together and taking them apart along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.checks import checked
from pullback.native import by_device, native
from pullback.typing import Array, Arrays, Dim, Shape


@native
def cat(tensors: Arrays, dim: int = 0) -> Array:
    """The tensors one after another along a dimension; one-dimensional empty ones are skipped, as PyTorch does."""
    parts = [a for a in tensors if a.shape != (0,)]
    if not parts:
        return np.empty((0,), tensors[0].dtype)
    result: Array = np.concatenate(parts, dim)
    if result.flags.c_contiguous or (result.ndim in (4, 5) and all(lies_channels_last(a) for a in parts)):
        return result
    return np.ascontiguousarray(result)


def lies_channels_last(array: Array) -> bool:
    """Whether dimension 1 varies fastest in memory, and the array is not row-major as well."""
    return not array.flags.c_contiguous and bool(np.moveaxis(array, 1, -1).flags.c_contiguous)


@native
def cat_back(grad: Array, shapes: list[Shape], dtypes: list[Any], dim: int) -> list[Array]:
    """The gradient of `cat`: the part of each tensor."""
    results, start = [], 0
    dim %= max(grad.ndim, 1)
    lead = (slice(None),) * dim
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if shape == (0,):
            results.append(np.zeros(shape, dtype))
            continue
        end = start + shape[dim]
        results.append(cast_array(grad[(*lead, slice(start, end))], dtype))
        start = end
    return results


@native
def stack(tensors: Arrays, dim: int = 0) -> Array:
    """The tensors along a new dimension."""
    dim += 0 if dim >= 0 else tensors[0].ndim + 1
    place = (*(slice(None),) * dim, None)  # what np.stack does, without its checks
    result: Array = np.concatenate([a[place] for a in tensors], dim)
    return result if result.flags.c_contiguous else np.ascontiguousarray(result)


@native
@checked
def split(input: Array, split_size: int, dim: Dim = 0) -> tuple[Array, ...]:
    """Views of `split_size` along a dimension; the last may be smaller."""
    extent = input.shape[dim]
    lead = (slice(None),) * dim
    starts = range(0, extent, split_size) if split_size and extent else (0,)
    return tuple([input[(*lead, slice(start, start + split_size))] for start in starts])


@native
@checked
def split_with_sizes(input: Array, split_sizes: Shape, dim: Dim = 0) -> tuple[Array, ...]:
    """Views of the given sizes along a dimension."""
    lead, start, parts = (slice(None),) * dim, 0, []
    for size in split_sizes:
        parts.append(input[(*lead, slice(start, start + size))])
        start += size
    return tuple(parts)


@native
@checked
def split_back(grads: Sequence[Array | None], shape: Shape, dtype: Any, split_size: int, dim: int) -> Array:
    """The gradient of `split`: the parts' gradients one after another, zeros for unused parts."""
    return split_with_sizes_back(grads, shape, dtype, split_sizes_of(shape[dim], split_size), dim)


def split_sizes_of(extent: int, split_size: int) -> Shape:
    """The sizes that `split` cuts a dimension into."""
    if extent == 0 or split_size == 0:
        return (0,)
    return tuple([min(split_size, extent - start) for start in range(0, extent, split_size)])


@native
def split_with_sizes_back(
    grads: Sequence[Array | None], shape: Shape, dtype: Any, split_sizes: Shape, dim: int
) -> Array:
    """The gradient of `split_with_sizes`."""
    result: Array = np.zeros(shape, dtype)
    lead, start = (slice(None),) * dim, 0
    for grad, size in zip(grads, split_sizes, strict=True):
        if grad is not None:
            result[(*lead, slice(start, start + size))] = grad
        start += size
    return result


def unbind(input: Array, dim: Dim = 0) -> tuple[Array, ...]:
    """A view of each slice along a dimension."""
    lead, count = (slice(None),) * dim, input.shape[dim]
    parts: list[Any] = [None] * count  # what memory has no room for is refused at once
    for i in range(count):
        parts[i] = input[(*lead, i, ...)]
    return tuple(parts)


@by_device
def unbind_back(grads: Sequence[Array | None], shape: Shape, dtype: Any, dim: int) -> Array:
    """The gradient of `unbind`."""
    result: Array = np.zeros(shape, dtype)
    lead = (slice(None),) * dim
    for i, grad in enumerate(grads):
        if grad is not None:
            result[(*lead, i, ...)] = grad
    return result


@by_device
def block_diag(tensors: Arrays) -> Array:
    """A matrix with the given matrices along its diagonal and zeros elsewhere."""
    blocks = [a.reshape(1, -1) if a.ndim < 2 else a for a in tensors]
    result: Array = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result
