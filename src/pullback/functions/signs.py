"""Overloads of functions of signs and magnitudes."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.graph.in_place import in_place
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def copysign(input: Tensor, other: Any, *, out: Any = None) -> Any:
    """The magnitude of `input` with the sign of `other`, a tensor or a number."""
    return (G.copysign if isinstance(other, TensorBase) else G.copysign_scalar)(input, other, out=out)


@declare(found="method")
def copysign_(input: Tensor, other: Any) -> Any:
    """In-place version of copysign."""
    return in_place(copysign, input, other)


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


@declare(found="torch and method")
def abs_(input: Tensor) -> Any:
    """In-place version of abs; the magnitudes of complex numbers are real, so these are refused."""
    if input.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return G.abs_(input)
