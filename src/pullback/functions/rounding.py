"""Rounding to decimals, and functions of signs and exponents that have overloads."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.graph.in_place import in_place, write_out
from pullback.tensor.return_types import RETURN_TYPES
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Any:
    """Round to a number of decimals, halves to the even neighbour.

    >>> import pullback
    >>> pullback.round(pullback.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    return G.round(input, out=out) if decimals == 0 else G.round_decimals(input, decimals, out=out)


@declare(found="torch and method")
def round_(input: Tensor, *, decimals: int = 0) -> Any:
    """In-place version of round."""
    return in_place(round, input, decimals=decimals)


@declare(found="torch and method")
def copysign(input: Tensor, other: Any, *, out: Any = None) -> Any:
    """The magnitude of `input` with the sign of `other`, a tensor or a number."""
    return (G.copysign if isinstance(other, TensorBase) else G.copysign_scalar)(input, other, out=out)


@declare(found="method")
def copysign_(input: Tensor, other: Any) -> Any:
    """In-place version of copysign."""
    return in_place(copysign, input, other)


@declare(found="torch and method")
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """Mantissas in [0.5, 1) and exponents of 2 that make up `input`."""
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    result = tuple(G.frexp(input))
    return RETURN_TYPES["frexp"](result if out is None else write_out("frexp", out, result))


@declare(found="torch and method")
def heaviside(input: Any, values: Any, *, out: Any = None) -> Any:
    """0 below zero, 1 above, `values` at zero."""
    if not (isinstance(input, Tensor) and isinstance(values, Tensor)):
        return G.heaviside(input, values, out=out)
    if input.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return G.heaviside(input, values, out=out)


@declare(found="method")
def heaviside_(input: Tensor, values: Tensor) -> Any:
    """In-place version of heaviside."""
    return in_place(heaviside, input, values)
