"""Running sums, products and extrema along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.backend.dtype import is_float_or_complex
from pullback.checks import checked
from pullback.kernels.accumulation import contiguous, widened
from pullback.native import native
from pullback.typing import Array, Dim, DType


@native
def cumsum(input: Array, dim: Dim, *, dtype: DType | None = None) -> Array:
    """The sums of all elements up to each along `dim`."""
    return _accumulate(np.add.accumulate, input, dim, dtype) + 0  # a sum of negative zeros is the positive one


@native
def reversed_cumsum(input: Array, dim: Dim) -> Array:
    """The sums of all elements from each on along `dim`: always a new array, unlike the formula of this name."""
    if input.ndim == 0:
        return np.array(input)
    return contiguous(np.flip(cumsum(np.flip(input, dim), dim), dim))


@native
def cumprod(input: Array, dim: Dim, *, dtype: DType | None = None) -> Array:
    """The products of all elements up to each along `dim`."""
    return _accumulate(np.multiply.accumulate, input, dim, dtype)


def _accumulate(function: Any, input: Array, dim: int, dtype: DType | None) -> Array:
    """Accumulate in double precision where the dtype is single, as a running sum has no pairwise form."""
    if dtype is None:
        dtype = input.dtype if is_float_or_complex(input.dtype) else np.dtype(np.int64)
    values = cast_array(input, dtype)
    if input.ndim == 0:
        return np.array(values)
    wide = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}.get(widened(values).dtype.char, dtype)
    return cast_array(contiguous(function(values, axis=dim, dtype=wide)), dtype)


@native
def cumprod_grad(grad: Array, input: Array, dim: Dim) -> Array:
    """The gradient of a running product, right with any number of zeros; see the formula of this name."""
    if input.ndim == 0:
        return np.array(grad)
    values = np.moveaxis(input.conj(), dim, 0)
    wide = np.complex128 if input.dtype.kind == "c" else np.float64
    sums = np.moveaxis(grad.astype(wide), dim, 0).copy()
    for place in range(len(sums) - 2, -1, -1):
        sums[place] += values[place + 1] * sums[place + 1]
    before = np.ones_like(sums)
    before[1:] = np.multiply.accumulate(values[:-1], axis=0, dtype=sums.dtype)
    return cast_array(contiguous(np.moveaxis(before * sums, 0, dim)), input.dtype)


@native
@checked
def cummax(input: Array, dim: Dim) -> tuple[Array, Array]:
    """The largest element up to each along `dim`, and the index of its last occurrence."""
    return _running(np.maximum, np.greater_equal, input, dim)


@native
@checked
def cummin(input: Array, dim: Dim) -> tuple[Array, Array]:
    """The smallest element up to each along `dim`, and the index of its last occurrence."""
    return _running(np.minimum, np.less_equal, input, dim)


def _running(extremum: Any, reaches: Any, input: Array, dim: int) -> tuple[Array, Array]:
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    if input.size == 0:
        return input.copy(), np.zeros(input.shape, np.int64)
    values = contiguous(extremum.accumulate(input, axis=dim))
    new = reaches(input, values)
    if is_float_or_complex(input.dtype):
        new |= np.isnan(input)
    shape = [1] * input.ndim
    shape[dim] = -1
    places = np.arange(input.shape[dim]).reshape(shape)
    return values, contiguous(np.maximum.accumulate(np.where(new, places, 0), axis=dim))


def _complex_logcumsumexp(values: Array, dim: int) -> Array:
    """Step by step, as the branch of each logarithm follows from the larger of the two that are added."""
    steps = np.moveaxis(values, dim, 0)
    results = np.empty_like(steps)
    running = results[0] = steps[0]
    for place in range(1, len(steps)):
        step = steps[place]
        is_larger = step.real >= running.real
        larger, smaller = np.where(is_larger, step, running), np.where(is_larger, running, step)
        added = larger + np.log1p(np.exp(smaller - larger))
        running = results[place] = np.where(np.isneginf(larger.real), smaller, added)
    return np.moveaxis(results, 0, dim)


@native
@checked
def logcumsumexp(input: Array, dim: Dim) -> Array:
    """The logarithms of the running sums of exponentials along `dim`.

    The result has the shape of `input`. y[i] = log(exp(x[0]) + ... + exp(x[i])), without overflow.

    >>> import pullback
    >>> pullback.logcumsumexp(pullback.zeros(3), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    if input.ndim == 0 or input.size == 0:
        return np.array(input)
    values = widened(input)
    if values.dtype.kind == "c":
        return cast_array(contiguous(_complex_logcumsumexp(values, dim)), input.dtype)
    wide = values.astype(np.float64)
    return cast_array(np.logaddexp.accumulate(wide, axis=dim), input.dtype)
