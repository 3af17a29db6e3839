"""Variance and standard deviation, with `unbiased` in the place of `correction` where it stands so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.backend.array_module import is_plain
from pullback.backend.dtype import scalar_type_name
from pullback.facts import declare
from pullback.modes.interception import interceptable
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def var(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    out: Any = None, axis: Any = None, keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """The mean squared distance from the mean, with the count less by `correction` (1).

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`). y = sum
    over i of (x_i - mean) ** 2 / (n - correction).

    >>> import pullback
    >>> pullback.var(pullback.tensor([1., 2., 3.]))
    tensor(1.)
    """
    return _call(G.var, "var", input, dim, unbiased, keepdim, correction, axis, keepdims, out)


@declare(found="torch and method")
def std(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    out: Any = None, axis: Any = None, keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """The square root of the variance.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`). y =
    sqrt(sum over i of (x_i - mean) ** 2 / (n - correction)), with `correction` 1 unless given.
    """
    return _call(G.std, "std", input, dim, unbiased, keepdim, correction, axis, keepdims, out)


@declare(found="torch")
def var_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    """The variance and the mean.

    A pair, over all elements or along `dim`; the sum of squares is divided by n - `correction`, which is 1 if not given.

    >>> import pullback
    >>> pullback.var_mean(pullback.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _call(G.var_mean, "var_mean", input, dim, unbiased, keepdim, correction, axis, keepdims, None)


@declare(found="torch")
def std_mean(
    input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
    axis: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    """The standard deviation and the mean.

    A pair, over all elements or along `dim`; the sum of squares is divided by n - `correction`, which is 1 if not given.

    >>> import pullback
    >>> pullback.std_mean(pullback.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
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
        warn_user(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )


@declare(found="torch and method")
@interceptable
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Any:
    """The covariances of the rows of `input`, whose columns are observations with frequencies and weights.

    `input` is (variables, observations), or one variable, and the result (variables, variables), or a number.
    `fweights` says how often each observation was made, `aweights` how much it counts; sums of products are divided by
    the number of observations less `correction`.

    >>> import pullback
    >>> pullback.cov(pullback.tensor([[1., 2., 3.], [3., 2., 1.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    given: Any = input
    if given.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {given.ndim} dimensions"
        )
    if given._array.dtype == bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = P.reshape(given, (1, -1)) if given.ndim < 2 else given
    observations = rows.shape[1]
    weights = _observation_weights(rows, fweights, aweights)
    total = observations if weights is None else P.sum(weights)
    if weights is None:
        center = P.sum(rows, 1) / observations
    else:
        center = P.sum(rows * weights, 1) / total
    if correction == 0:
        freedom = total
    elif aweights is None or weights is None:
        freedom = total - correction
    else:
        squares = P.sum(weights * P.to(aweights, weights.dtype))
        freedom = total - P.mul_scalar(squares, correction) / total
    if isinstance(freedom, TensorBase) and not is_plain(freedom._array):
        freedom = P.clamp_min(freedom, 0)
    elif freedom <= 0:
        warn_user("cov(): degrees of freedom is <= 0")
        freedom = P.zero_(freedom) if isinstance(freedom, TensorBase) else 0
    centered = rows - P.unsqueeze(center, 1)
    weighted = centered if weights is None else centered * weights
    return P.squeeze(P.mm(centered, P.conj(P.t(weighted))) / freedom)


def _observation_weights(rows: Any, fweights: Any, aweights: Any) -> Any:
    """The product of both kinds of weights, checked, or None."""
    weights: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {given.ndim} dimensions"
            )
        if name == "fweights" and given._array.dtype.kind not in "iu":
            found = scalar_type_name(given._array.dtype)
            raise RuntimeError(f"cov(): expected {name} to have integral dtype but got {name} with {found} dtype")
        if name == "aweights" and not given.is_floating_point():
            raise RuntimeError(
                f"cov(): expected {name} to have floating point dtype but got {name} with {given.dtype} dtype"
            )
        if given.numel() != rows.shape[1]:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{given.numel()} != {rows.shape[1]}"
            )
        if given.numel() and P.any(given < 0).item():
            raise RuntimeError(f"cov(): {name} cannot be negative")
        weights = given if weights is None else weights * given
    return weights


@declare(found="torch and method")
def corrcoef(input: Tensor) -> Any:
    """The correlation coefficients of the rows of `input`.

    `input` is (variables, observations), and the result (variables, variables), each element in [-1, 1]. y[i, j] =
    cov[i, j] / sqrt(cov[i, i] * cov[j, j]).

    >>> import pullback
    >>> pullback.corrcoef(pullback.tensor([[1., 2., 3.], [3., 2., 1.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    variances = P.diagonal(covariance)
    deviation = P.sqrt(P.real(variances) if covariance.is_complex() else variances)
    result = covariance / P.reshape(deviation, (-1, 1)) / P.reshape(deviation, (1, -1))
    if not result.is_complex():
        return P.clamp(result, -1, 1)
    return P.complex(P.clamp(P.real(result), -1, 1), P.clamp(P.imag(result), -1, 1))
