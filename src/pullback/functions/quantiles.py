"""Quantiles: positions in the sorted elements, with interpolation."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.creation import full_like, tensor
from pullback.facts import declare
from pullback.functions.view_copies import apart
from pullback.graph.in_place import write_out
from pullback.modes.interception import interceptable, taken_whole
from pullback.tensor.tensor import Tensor, TensorBase

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@taken_whole
@declare(autocast="float32", out_dtype="quantile() out tensor must be same dtype as the input tensor, {0}, and not {1}")
def quantile(
    input: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The elements at the fractions `q` of the sorted tensor, or of `dim`; NaN where there is a NaN.

    >>> import pullback
    >>> pullback.quantile(pullback.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out, ignore_nan=False)


@taken_whole
@declare(autocast="float32")
def nanquantile(
    input: Tensor,
    q: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The quantiles of the elements that are numbers."""
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out, ignore_nan=True)


@interceptable
def _quantile(
    name: str, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, out: Any, *, ignore_nan: bool
) -> Any:
    fractions = _fractions(name, input, q)
    if input.dtype.itemsize not in (4, 8) or not input.is_floating_point():
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    rows = P.flatten(input) if dim is None or input.ndim == 0 else P.movedim(input, dim, -1)
    ordered = P.sort(rows, -1).values
    ranks = _ranks(ordered, P.reshape(fractions, (-1,)), ignore_nan=ignore_nan)
    values = _interpolated(ordered, ranks, interpolation)
    result = apart(_placed(values, fractions.ndim, input.ndim, dim, keepdim), "SqueezeBackward4")
    return result if out is None else write_out("quantile", out, result)


def _fractions(name: str, input: Any, q: Any) -> Any:
    if not isinstance(q, TensorBase):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return tensor(q, dtype=input.dtype, device=input.device)
    given: Any = q
    if given.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if given.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not ((given._array >= 0) & (given._array <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return given


def _ranks(ordered: Any, fractions: Any, *, ignore_nan: bool) -> Any:
    """Where in each sorted row the quantiles lie; NaNs are last there."""
    values = ordered.detach()
    if ignore_nan:
        last = P.clamp_min(G.count_not_nan(values, -1, True) - 1, 0)
        return fractions * last
    size = values.shape[-1]
    missing = P.isnan(P.narrow(values, -1, size - 1, 1))
    ranks = P.expand(fractions * (size - 1), (*values.shape[:-1], fractions.shape[0]))
    return P.masked_fill(ranks, missing, size - 1)


def _interpolated(ordered: Any, ranks: Any, interpolation: str) -> Any:
    if interpolation == "lower":
        return _at(ordered, P.floor(ranks))
    if interpolation == "higher":
        return _at(ordered, P.ceil(ranks))
    if interpolation == "nearest":
        return _at(ordered, P.round(ranks))
    below, above = _at(ordered, P.floor(ranks)), _at(ordered, P.ceil(ranks))
    weights = full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - P.floor(ranks.detach())
    return P.lerp(below, above, weights)


def _at(ordered: Any, ranks: Any) -> Any:
    index = P.long(ranks.detach())
    index = P.expand(index, (*ordered.shape[:-1], index.shape[-1]))
    return G.take_along(ordered, index, ordered.ndim - 1)


def _placed(values: Any, q_ndim: int, ndim: int, dim: Any, keepdim: bool) -> Any:
    """The quantiles first if `q` is a list, then the dimensions that were not reduced."""
    if keepdim and dim is None:
        values = P.reshape(values, (*(1,) * ndim, values.shape[-1]))
    elif keepdim and ndim:
        values = P.unsqueeze(values, dim if dim >= 0 else dim - 1)
    values = P.movedim(values, -1, 0)
    return P.squeeze(values, 0) if q_ndim == 0 else values
