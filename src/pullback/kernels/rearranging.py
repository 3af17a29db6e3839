"""Copies with the elements in other places: reversed, rolled, repeated, on or beside a diagonal."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.array_module import copy_array
from pullback.checks import checked
from pullback.kernels.shape import diagonal
from pullback.native import by_device, native
from pullback.typing import Array, Shape


@native
def flip(input: Array, dims: Shape) -> Array:
    """A copy with the order along the dimensions reversed."""
    flipped = np.flip(input, dims)
    if 0 in input.strides:
        made = copy_array(input)  # in the memory order that PyTorch gives a copy of what is expanded
        made[...] = flipped
        return made
    return np.array(flipped, order="K", copy=True)


@native
def roll(input: Array, shifts: Shape, dims: Shape) -> Array:
    """A copy shifted along the dimensions (in row-major order if there are none); what leaves at one end comes back."""
    if input.size == 0 or input.ndim == 0:
        return np.array(input)
    return np.ascontiguousarray(np.roll(input, shifts, dims) if dims else np.roll(input, shifts[0]))


def rot90(input: Array, k: int, dims: Shape) -> Array:
    """A copy turned by `k` quarters in the plane of two dimensions."""
    turned: Array = np.rot90(input, k, (dims[0], dims[1]))
    return turned.copy(order="K" if k % 4 else "C")


@by_device
def repeat(input: Array, repeats: Shape) -> Array:
    """The tensor repeated along each dimension."""
    return np.ascontiguousarray(np.tile(input, repeats)) if repeats else np.array(input)


def repeat_interleave_counts(input: Array, repeats: Array, dim: int) -> Array:
    """Each slice along a dimension repeated as often as its count says."""
    return np.repeat(input, repeats, axis=dim)


@native
@checked
def tril(input: Array, diagonal: int = 0) -> Array:
    """The lower triangle of matrices, zeros above a diagonal.

    `input` is (*, n, m), and the result has the same shape. y[i, j] = input[i, j] if j <= i + diagonal else 0.
    """
    return np.ascontiguousarray(np.where(_lower(input, diagonal), input, np.zeros((), input.dtype)))


@native
@checked
def triu(input: Array, diagonal: int = 0) -> Array:
    """The upper triangle of matrices, zeros below a diagonal.

    `input` is (*, n, m), and the result has the same shape. y[i, j] = input[i, j] if j >= i + diagonal else 0.
    """
    return np.ascontiguousarray(np.where(_lower(input, diagonal - 1), np.zeros((), input.dtype), input))


def _lower(input: Array, diagonal: int) -> Array:
    rows, columns = input.shape[-2:]
    return np.tri(rows, columns, diagonal, np.bool_)


@by_device
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Zeros with the last dimension of `input` along a diagonal of two new dimensions."""
    result_ndim = input.ndim + 1
    first, second = dim1 % result_ndim, dim2 % result_ndim
    size = input.shape[-1] + abs(offset)
    lengths = list(input.shape[:-1])
    for at in sorted((first, second)):
        lengths.insert(at, size)
    result: Array = np.zeros(lengths, input.dtype)
    if first + second < 2 * result_ndim - 3:
        diagonal(result, offset, first, second)[...] = input
        return result
    # Along flat matrices the diagonal is one slice, which takes a third of the time for few elements.
    above = offset if first < second else -offset
    start, length = above if above > 0 else -above * size, input.shape[-1] * (size + 1)
    result.reshape(*input.shape[:-1], size * size)[..., start : start + length : size + 1] = input
    return result


@by_device
def repeat_back(grad: Array, shape: Shape, repeats: Shape) -> Array:
    """The gradient of `repeat`: the sum over the repetitions."""
    lead = len(repeats) - len(shape)
    whole = (1,) * lead + tuple(shape)
    if 0 in repeats or math.prod(shape) == 0:
        return np.zeros(shape, grad.dtype)
    parts = [n for pair in zip(repeats, whole, strict=True) for n in pair]
    return grad.reshape(parts).sum(tuple(range(0, 2 * len(repeats), 2)), dtype=grad.dtype).reshape(shape)
