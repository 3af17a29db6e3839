"""Norms of vectors."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.backend.dtype import promote_for_subtraction, real_of
from pullback.checks import checked
from pullback.kernels.accumulation import accurate_sum, reduced_axes, widened
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Dims, DType, Scalar


@native
@checked
def linalg_vector_norm(
    input: Array, ord: Scalar = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Array:
    """The `ord`-th root of the sum of `ord`-th powers over `dim`; inf, -inf and 0 are the limits of that."""
    wanted = input.dtype if dtype is None else dtype
    values = widened(cast_array(input, wanted))
    axes = reduced_axes(input, dim)
    result = _norm(values, float(ord), axes, keepdim)  # type: ignore[arg-type]
    return cast_array(result, real_of(wanted))


def _norm(values: Array, order: float, axes: tuple[int, ...], keepdim: bool) -> Array:
    if order != 0 and values.size and all(values.shape[axis] == 1 for axis in axes):  # no power of one number overflows
        sizes = np.asarray(np.abs(values))
        return sizes if keepdim else np.squeeze(sizes, axes)
    if order == 2 and values.dtype.kind != "c":
        return np.sqrt(accurate_sum(np.asarray(values * values), axes, keepdim))
    sizes = np.asarray(np.abs(values))
    if order == 0:
        return accurate_sum((sizes != 0).astype(sizes.dtype), axes, keepdim)
    if order == 1:
        return accurate_sum(sizes, axes, keepdim)
    if math.isinf(order):
        function = np.max if order > 0 else np.min
        return function(sizes, axis=axes, keepdims=keepdim)
    if order == 2:
        return np.sqrt(accurate_sum(sizes * sizes, axes, keepdim))
    return np.power(accurate_sum(np.power(sizes, order), axes, keepdim), 1 / order)


@by_device
def unit_or_zero(input: Array, other: Array) -> Array:
    """Numbers relative to a norm of theirs, zero where that is zero."""
    zero = other == 0
    if input.dtype.kind == "c":  # a complex zero by infinity is nan for some array libraries
        return np.where(zero, 0, input / np.where(zero, 1, other))
    return input / np.where(zero, np.asarray(np.inf, other.dtype), other)


@by_device
def norm_dim(input: Array, p: Scalar, dim: Dims, keepdim: bool = False) -> Array:
    """The vector norm under the name of PyTorch's older function."""
    return linalg_vector_norm(input, p, dim, keepdim)


@by_device
def dist(input: Array, other: Array, p: Scalar = 2) -> Array:
    """The norm of the difference.

    Over all elements, after broadcasting. y = (sum of |input - other| ** p) ** (1 / p); `p` may be inf.

    >>> import pullback
    >>> pullback.dist(pullback.tensor([1.0, 2.0]), pullback.tensor([4.0, 6.0]))
    tensor(5.)
    """
    input, other = promote_for_subtraction(input, other)
    return linalg_vector_norm(np.asarray(input - other), p)


@by_device
@checked
def renorm(input: Array, p: Scalar, dim: Dim, maxnorm: Scalar) -> Array:
    """The slices along `dim` scaled down to a norm of `maxnorm` where theirs is larger.

    Slices are those along dimension `dim`, and `p` is the order of their norm; the others stay as they are.

    >>> import pullback
    >>> pullback.renorm(pullback.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    others = tuple(axis for axis in range(input.ndim) if axis != dim)
    norms = linalg_vector_norm(widened(input), p, others, True)
    factor = np.where(norms > maxnorm, maxnorm / (norms + 1e-7), np.ones_like(norms)).astype(norms.dtype)
    return cast_array(widened(input) * factor, input.dtype)
