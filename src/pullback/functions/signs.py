"""Overloads of functions of signs and magnitudes."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.graph.in_place import in_place
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def copysign(input: Tensor, other: Any, *, out: Any = None) -> Any:
    """The magnitude of `input` with the sign of `other`, a tensor or a number.

    Both are broadcast together; a negative zero counts as negative. y = |input| * (-1 if other is negative else 1).

    >>> import pullback
    >>> pullback.copysign(pullback.tensor([1.0, -2.0]), pullback.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """
    return (G.copysign if isinstance(other, TensorBase) else G.copysign_scalar)(input, other, out=out)


@declare(found="method")
def copysign_(input: Tensor, other: Any) -> Any:
    """In-place version of copysign."""
    return in_place(copysign, input, other)


@declare(found="torch and method")
def heaviside(input: Any, values: Any, *, out: Any = None) -> Any:
    """0 below zero, 1 above, `values` at zero.

    Both are broadcast together and have one dtype. The step function, with its value at the step for you to choose.

    >>> import pullback
    >>> pullback.heaviside(pullback.tensor([-2.0, 0.0, 3.0]), pullback.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
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
