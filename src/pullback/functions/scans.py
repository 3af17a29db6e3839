"""Running extrema with named results."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.functions.reductions import _require_differentiable
from pullback.tensor.return_types import named_results
from pullback.tensor.tensor import Tensor


def cumsum(input: Tensor, dim: Any, *, dtype: Any = None, out: Any = None) -> Any:
    """The sums of all elements up to each along `dim`."""
    if dtype is not None:
        _require_differentiable(input, dtype)
    return G.cumsum(input, dim, dtype=dtype, out=out)


def cumprod(input: Tensor, dim: Any, *, dtype: Any = None, out: Any = None) -> Any:
    """The products of all elements up to each along `dim`."""
    if dtype is not None:
        _require_differentiable(input, dtype)
    return G.cumprod(input, dim, dtype=dtype, out=out)


def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The largest element up to each along `dim`, and its index."""
    return named_results("cummax", G.cummax, input, dim, out=out)


def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The smallest element up to each along `dim`, and its index."""
    return named_results("cummin", G.cummin, input, dim, out=out)


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None) -> Any:
    """The differences of neighbours along `dim`, taken `n` times."""
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return G.clone(input)
    parts = [part for part in (prepend, input, append) if part is not None]
    result: Any = P.cat(parts, dim) if len(parts) > 1 else input
    dim = dim % input.ndim
    is_bool = not result.is_complex() and result._array.dtype == bool
    for _ in range(min(n, result.shape[dim])):
        size = result.shape[dim] - 1
        upper, lower = P.narrow(result, dim, 1, size), P.narrow(result, dim, 0, size)
        result = P.logical_xor(upper, lower) if is_bool else upper - lower
    return result if out is None else G.clone(result, out=out)


def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along `dim` by the trapezoidal rule, at points `x` or `dx` apart."""
    _require_dim(y)
    given: Any = y
    size = given.shape[dim]
    if x is not None:
        if size == 0:
            return P.sum(given.detach(), dim, dtype=given.dtype)
        left, right, steps = _pieces("trapezoid", given, x, dim)
        return P.sum((left + right) * steps, dim) / 2.0
    dx = 1 if dx is None else dx
    if size == 0:
        return P.sum(given.detach(), dim, dtype=given.dtype)
    ends = P.select(given, dim, 0) + P.select(given, dim, -1)
    return (P.sum(given, dim) - ends * 0.5) * dx


trapz = trapezoid


def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The running integral along `dim` by the trapezoidal rule."""
    _require_dim(y)
    given: Any = y
    if x is not None:
        left, right, steps = _pieces("cumulative_trapezoid", given, x, dim)
        return P.cumsum((left + right) * steps, dim) / 2.0
    left, right = _neighbours(given, dim)
    return P.cumsum((left + right) * ((1 if dx is None else dx) / 2.0), dim)


def _require_dim(y: Tensor) -> None:
    if y.ndim == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")


def _neighbours(values: Any, dim: int) -> tuple[Any, Any]:
    size = max(values.shape[dim] - 1, 0)
    return P.narrow(values, dim, 0, size), P.narrow(values, dim, min(1, values.shape[dim]), size)


def _pieces(name: str, y: Any, x: Any, dim: int) -> tuple[Any, Any, Any]:
    """The values left and right of each step, and the steps, shaped to multiply them."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = P.reshape(x, tuple(shape))
    elif x.ndim < y.ndim:
        x = P.reshape(x, (*(1,) * (y.ndim - x.ndim), *x.shape))
    before, after = _neighbours(x, dim)
    left, right = _neighbours(y, dim)
    return left, right, after - before
