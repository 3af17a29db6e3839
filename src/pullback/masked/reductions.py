"""Masked sums, products, extrema, means, variances, norms and running sums."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.masked.selection import broadcast_mask, canonical_dims, highest, lowest, select
from pullback.tensor.tensor import Tensor


def _accumulated(input: Tensor, dtype: Any) -> Tensor:
    """Convert to `dtype`; small integers and bool to int64 where none is given."""
    if dtype is None:
        is_exact = not (input.dtype.is_floating_point or input.dtype.is_complex)
        dtype = pullback.int64 if is_exact else input.dtype
    return input if input.dtype == dtype else input.to(dtype)


def _converted(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None or input.dtype == dtype else input.to(dtype)


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Sum the selected elements: 0 where none is."""
    selected = select(_accumulated(input, dtype), mask, 0)
    dims = canonical_dims(dim, input.ndim)
    return pullback.sum(selected, dims, bool(keepdim)) if dims else selected.clone()


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Multiply the selected elements: 1 where none is."""
    result = select(_accumulated(input, dtype), mask, 1)
    for one in reversed(canonical_dims(dim, input.ndim)):
        result = pullback.prod(result, one, keepdim=bool(keepdim))
    return result.clone() if result is input and dim not in (None, ()) else result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Sum along a dimension, step by step."""
    return _running(pullback.cumsum, input, dim, dtype, mask, 0)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Multiply along a dimension, step by step."""
    return _running(pullback.cumprod, input, dim, dtype, mask, 1)


def _running(function: Any, input: Tensor, dim: int, dtype: Any, mask: Tensor | None, neutral: int) -> Tensor:
    """Accumulate in the dtype of the input, small integers too."""
    dtype = input.dtype if dtype is None else dtype
    if dtype == pullback.bool:
        raise NotImplementedError(f"\"{function.__name__}_out_cpu\" not implemented for 'Bool'")
    result: Tensor = function(select(_converted(input, dtype), mask, neutral), dim, dtype=dtype)
    return result


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The largest selected element: -inf, or the smallest integer, where none is."""
    input = _converted(input, dtype)
    selected = select(input, mask, lowest(input.dtype))
    return pullback.amax(selected, canonical_dims(dim, input.ndim), bool(keepdim))


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest selected element: inf, or the largest integer, where none is."""
    input = _converted(input, dtype)
    selected = select(input, mask, highest(input.dtype))
    return pullback.amin(selected, canonical_dims(dim, input.ndim), bool(keepdim))


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The position of the largest selected element, in the dtype of the input."""
    input = _converted(input, dtype)
    return pullback.argmax(select(input, mask, lowest(input.dtype)), dim, bool(keepdim)).to(input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The position of the smallest selected element, in the dtype of the input."""
    input = _converted(input, dtype)
    return pullback.argmin(select(input, mask, highest(input.dtype)), dim, bool(keepdim)).to(input.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool | None, mask: Tensor | None) -> Tensor:
    """How many elements are selected, in the dtype of the input."""
    ones = pullback.ones(input.shape, dtype=input.dtype)
    return sum(ones, dims, keepdim=keepdim, mask=mask)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the selected elements: NaN where none is."""
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: torch.{str(input.dtype).split('.')[-1]}"
        )
    input = _converted(input, dtype)
    dims = canonical_dims(dim, input.ndim)
    return sum(input, dims, keepdim=keepdim, mask=mask) / _count(input, dims, keepdim, mask)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower of the middle selected elements: NaN where none is."""
    input = _converted(input, dtype)
    if input.dtype.is_floating_point:
        return pullback.nanmedian(select(input, mask, float("nan")), dim, keepdim).values
    if mask is not None and not bool(broadcast_mask(mask, input).all()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return pullback.median(input, dim, keepdim).values


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the summed exponentials of the selected elements: -inf where none is."""
    input = _converted(input, dtype)
    selected = select(input, mask, lowest(input.dtype))
    result: Tensor = pullback.logsumexp(selected, canonical_dims(dim, input.ndim), keepdim)
    return _converted(result, input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the selected elements."""
    order = 2.0 if ord is None else ord
    input = _converted(input, dtype)
    selected = select(input, mask, float("inf") if order == -float("inf") else 0)
    return pullback.linalg.vector_norm(selected, order, canonical_dims(dim, input.ndim), bool(keepdim))


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the selected elements, divided by their number less `correction` (1)."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    if not (input.dtype.is_floating_point or input.dtype.is_complex) and dtype is None:
        dtype = pullback.get_default_dtype()
    input = _converted(input, dtype)
    dims = canonical_dims(dim, input.ndim)
    count = _count(input, dims, True, mask)
    deviation = input - sum(input, dims, keepdim=True, mask=mask) / count
    squares = deviation * deviation.conj() if input.is_complex() else deviation * deviation
    total = sum(squares, dims, keepdim=keepdim, mask=mask)
    divisor = count.real.reshape(total.shape) if input.is_complex() else count.reshape(total.shape)
    return total / pullback.clamp(divisor - correction, min=0)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of the variance of the selected elements."""
    variance = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return pullback.sqrt(variance)
