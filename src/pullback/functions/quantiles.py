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
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor, TensorBase

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@taken_whole
@declare(
    autocast="float32",
    out_dtype="quantile() out tensor must be same dtype as the input tensor, {0}, and not {1}",
    found="torch and method",
)
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
@declare(autocast="float32", found="torch and method")
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
    """The quantiles of the elements that are numbers.

    `q`, a number or a vector of numbers in [0, 1], says which; the rest is as for `quantile`. nan where all are nan.

    >>> import pullback
    >>> pullback.nanquantile(pullback.tensor([1.0, pullback.nan, 3.0]), 0.5)
    tensor(2.)
    """
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
    rows, shape = _as_rows(input, dim, keepdim)
    ordered = P.view(P.sort(rows, -1).values, (*shape, rows.shape[-1]))
    values = _interpolated(ordered, _ranks(ordered, fractions, ignore_nan=ignore_nan), interpolation)
    if fractions.ndim:
        values = apart(P.unsqueeze(values, 0), "UnsqueezeBackward1")
        values = apart(P.transpose(values, 0, -1), "TransposeBackward1")
    result = apart(P.squeeze(values, -1), "SqueezeBackward4")
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
        return P.masked_fill(fractions * last, P.isnan(values).all(-1, True), 0)
    size = values.shape[-1]
    missing = P.isnan(P.narrow(values, -1, size - 1, 1))
    shape = (*values.shape[:-1], fractions.shape[0] if fractions.ndim else 1)
    return P.masked_fill(P.expand(G.mul_scalar(fractions, size - 1), shape), missing, size - 1)


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
    return P.gather(ordered, -1, P.expand(index, (*ordered.shape[:-1], index.shape[-1])))


def _as_rows(input: Any, dim: Any, keepdim: bool) -> tuple[Any, tuple[int, ...]]:
    """The tensor with what is reduced as its last dimension, and the shape of the result without quantiles."""
    sizes = tuple(input.shape)
    if dim is None:
        return P.flatten(input), (1,) * len(sizes) if keepdim else ()
    dim = wrap_dim(dim, len(sizes))
    shape = sizes[:dim] + (1,) * (keepdim and bool(sizes)) + sizes[dim + 1 :]
    if sizes and dim == len(sizes) - 1:
        return input, shape
    return P.transpose(P.unsqueeze(input, -1), dim, -1), shape
