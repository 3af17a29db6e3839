"""Writing where a mask is true, and writing into a view of a copy."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import as_strided
from pullback.checks import checked
from pullback.checks.elements import value_out_of_range
from pullback.checks.numbers import checked_number
from pullback.kernels.creation import checked_fill
from pullback.kernels.index_arrays import broadcast_shape
from pullback.kernels.scattering import copy_in_order, row_major_copy
from pullback.kernels.shape import diagonal, select_part
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Scalar, Shape


@native
@checked
def masked_fill(input: Array, mask: Array, value: Scalar) -> Array:
    """A copy of `input` with a number where `mask` is true."""
    filled = np.where(mask, np.asarray(checked_number(value, input.dtype), input.dtype), input)
    return np.ascontiguousarray(filled) if filled.ndim > 1 else filled


@by_device
def masked_fill_tensor(input: Array, mask: Array, value: Array) -> Array:
    """A copy of `input` with the value of a 0-dim tensor where `mask` is true."""
    if np.asarray(value).dtype.kind in "cW" and input.dtype.kind not in "cW":
        value = checked_number(value.item(), input.dtype)
    return np.where(mask, np.asarray(value).astype(input.dtype), input)


@by_device
def sum_where(input: Array, mask: Array) -> Array:
    """The sum of the elements where `mask` is true."""
    return np.where(mask, input, np.zeros((), input.dtype)).sum(dtype=input.dtype)


@by_device
@checked
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    """A copy of `input` with the elements where `mask` is true taken, in order, from `source`.

    `mask` is of bools and is broadcast with `input`; `source` has at least as many elements as it has True.

    >>> import pullback
    >>> pullback.masked_scatter(pullback.zeros(3), pullback.tensor([True, False, True]), pullback.tensor([7.0, 8.0]))
    tensor([7., 0., 8.])
    """
    shape = broadcast_shape(input.shape, mask.shape)
    chosen = np.broadcast_to(mask, shape)
    result = row_major_copy(np.broadcast_to(input, shape))
    count = int(np.count_nonzero(chosen))
    if count > source.size:
        raise value_out_of_range(f"Number of elements of source < number of ones in mask: {source.size} < {count}")
    result[chosen] = source.reshape(-1)[:count]
    return result


@by_device
def select_scatter(input: Array, src: Array, dim: Dim, index: int) -> Array:
    """A copy of `input` with `src` at one position of a dimension.

    `src` has the shape of `input` without `dim`. y[:, index] = src for dim = 1; a gradient flows to both.

    >>> import pullback
    >>> pullback.select_scatter(pullback.zeros(2, 2), pullback.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    result = copy_in_order(input)
    part = select_part(result, dim, index)
    part[...] = src
    return result


@by_device
def slice_scatter(
    input: Array, src: Array, dim: Dim = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """A copy of `input` with `src` in a slice of a dimension.

    `src` has the shape of that slice. y[start:end:step] = src for dim = 0; a gradient flows to both.

    >>> import pullback
    >>> pullback.slice_scatter(pullback.zeros(4), pullback.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    result = copy_in_order(input)
    part = result[(*[slice(None)] * dim, slice(start, end, step))]
    part[...] = src
    return result


@by_device
def diagonal_scatter(input: Array, src: Array, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Array:
    """A copy of `input` with `src` on a diagonal."""
    result = copy_in_order(input)
    part = diagonal(result, offset, dim1, dim2)
    part[...] = src
    return result


@by_device
def as_strided_scatter(
    input: Array, src: Array, size: Shape, stride: Shape, storage_offset: int | None = None
) -> Array:
    """A copy of `input` with `src` in the strided window of its storage."""
    result = row_major_copy(input)
    part = as_strided(result, size, stride, storage_offset or 0)
    part[...] = src
    return result


@by_device
def fill(input: Array, value: Scalar) -> Array:
    """One number in the shape of `input`."""
    return checked_fill(input.shape, value, input.dtype)


@by_device
def fill_tensor(input: Array, value: Array) -> Array:
    """The value of a 0-dim tensor in the shape of `input`."""
    return np.full(input.shape, value, input.dtype)


@by_device
def fill_in_place(input: Array, value: Scalar) -> Array:
    """As `fill`, whose in-place form PyTorch records under another name."""
    return fill(input, value)


@by_device
def fill_in_place_tensor(input: Array, value: Array) -> Array:
    """As `fill_tensor`, whose in-place form PyTorch records under another name."""
    return fill_tensor(input, value)


@by_device
def zero(input: Array) -> Array:
    """Zeros in the shape of `input`."""
    return np.zeros(input.shape, input.dtype)
