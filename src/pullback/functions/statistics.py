"""Variance and standard deviation, with `unbiased` in the place of `correction` where it stands so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.tensor.tensor import Tensor


def var(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    out: Any = None, axis: Any = None, keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """The mean squared distance from the mean, with the count less by `correction` (1).

    >>> import pullback
    >>> pullback.var(pullback.tensor([1., 2., 3.]))
    tensor(1.)
    """
    return _call(G.var, "var", input, dim, unbiased, keepdim, correction, axis, keepdims, out)  # type: ignore[no-any-return]


def std(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    out: Any = None, axis: Any = None, keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """The square root of the variance."""
    return _call(G.std, "std", input, dim, unbiased, keepdim, correction, axis, keepdims, out)  # type: ignore[no-any-return]


def var_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    """The variance and the mean."""
    return _call(G.var_mean, "var_mean", input, dim, unbiased, keepdim, correction, axis, keepdims, None)


def std_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation and the mean."""
    return _call(G.std_mean, "std_mean", input, dim, unbiased, keepdim, correction, axis, keepdims, None)


def _call(
    function: Callable[..., Any], name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any,
    axis: Any, keepdims: Any, out: Any,
) -> Any:  # fmt: skip
    """Sort out `var(x, unbiased)`, `var(x, dim, unbiased, keepdim)` and `var(x, dim, correction=...)`."""
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    _warn_of_freedom(name, input, dim, correction)
    arguments = (input, dim, correction, keepdim)
    return function(*arguments) if out is None else function(*arguments, out=out)


def _warn_of_freedom(name: str, input: Tensor, dim: Any, correction: float) -> None:
    """Warn where the corrected count is not positive: the result is NaN or infinite."""
    shape = input._array.shape
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        count = input._array.size
    else:
        count = 1
        for axis in dim if isinstance(dim, (tuple, list)) else (dim,):
            if not shape or not -len(shape) <= axis < len(shape):
                break
            count *= shape[axis]
    if count - correction <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            stacklevel=4,
        )
