"""Variance and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.backend.dtype import real_of
from pullback.checks import checked
from pullback.kernels.accumulation import (
    accurate_sum,
    add_up,
    contiguous,
    is_whole,
    reduced_axes,
    reduced_count,
    widened,
)
from pullback.native import native
from pullback.typing import Array, Dims


@native
@checked
def var(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Array:
    """The mean squared distance from the mean, over `dim` or everything; the count is less by `correction`."""
    variance, _ = _moments(input, dim, correction, keepdim)
    return cast_array(variance, real_of(input.dtype))


@native
@checked
def std(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> Array:
    """The square root of the variance."""
    variance, _ = _moments(input, dim, correction, keepdim)
    return cast_array(np.sqrt(variance), real_of(input.dtype))


@native
@checked
def var_mean(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> tuple[Array, Array]:
    """The variance and the mean."""
    variance, mean = _moments(input, dim, correction, keepdim)
    return cast_array(variance, real_of(input.dtype)), cast_array(mean, input.dtype)


@native
@checked
def std_mean(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> tuple[Array, Array]:
    """The standard deviation and the mean."""
    variance, mean = _moments(input, dim, correction, keepdim)
    return cast_array(np.sqrt(variance), real_of(input.dtype)), cast_array(mean, input.dtype)


@native
def var_grad(grad: Array, input: Array, dim: Dims, correction: float, keepdim: bool) -> Array:
    """The gradient of a variance: twice the distance from the mean, over the corrected count."""
    axes = reduced_axes(input, dim)
    freedom = reduced_count(input, dim) - correction
    factor = 2 / freedom if freedom else np.inf
    values = widened(input)
    total = add_up(values, axes, True, dtype=np.complex128 if values.dtype.kind == "c" else np.float64)
    mean = total / np.asarray(reduced_count(input, dim), np.float64)
    wide = grad if keepdim or not input.ndim else np.expand_dims(grad, axes)
    if freedom <= 0 and is_whole(input, dim):
        return cast_array(wide * np.where(values == mean, np.nan, np.inf), input.dtype)
    return cast_array(wide * factor * (values - cast_array(mean, input.dtype)), input.dtype)


def _snapped(mean: Array, values: Array, axes: tuple[int, ...]) -> Array:
    """The mean, or the first value where the two differ by rounding: equal values have the variance zero exactly."""
    if not values.size:
        return mean
    first = values[tuple(slice(0, 1) if d in axes else slice(None) for d in range(values.ndim))]
    return np.where(np.abs(mean - first) <= 8 * np.finfo(values.dtype).eps * np.abs(first), first, mean)


def _moments(input: Array, dim: Dims, correction: float, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean, in two passes, in float64: the second is about the mean of the first.

    In float32 a small variance is lost in the rounding of a large mean, and squares overflow where their root does not.
    """
    axes = reduced_axes(input, dim)
    count = reduced_count(input, dim)
    values = input.astype(np.complex128 if input.dtype.kind == "c" else np.float64, copy=False)
    mean = accurate_sum(values, axes, True) / np.asarray(count, real_of(values.dtype))
    mean = _snapped(mean, values, axes)
    distance = values - mean
    if distance.dtype.kind == "c":
        squares = distance.real**2 + distance.imag**2
    else:
        squares = np.multiply(distance, distance, out=distance if distance.ndim else None)
    freedom = max(count - correction, 0) if count else 0  # of nothing there is no variance, whatever the correction
    variance = accurate_sum(np.asarray(squares), axes, True) / np.asarray(freedom, squares.dtype)
    if not keepdim:
        variance, mean = np.squeeze(variance, axes), np.squeeze(mean, axes)
    return contiguous(variance), contiguous(mean)
