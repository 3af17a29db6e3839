"""Comparisons of whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.graph.in_place import in_place
from pullback.kernels.comparison import equal_arrays
from pullback.modes.interception import interceptable
from pullback.tensor.tensor import Tensor


@interceptable
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    if input is other and input._array.dtype.kind not in "fcV":
        return True
    return equal_arrays(input._array, other._array)


@interceptable
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most `atol + rtol * |other|`."""
    close: Any = G.isclose(input, other, rtol, atol, equal_nan)
    return bool(close._array.all())


def _step(input: Tensor, compare: Callable[..., Any], other: Any) -> Any:
    """The outcome of a comparison as numbers that depend on `input` with the gradient zero."""
    outcome = G.to_dtype(compare(input, other), input._array.dtype)
    return G.tied_to(outcome, input) if input._requires_grad else outcome


def eq_(input: Tensor, other: Any) -> Any:
    """In-place version of eq."""
    return in_place(_step, input, G.eq, other)


def ne_(input: Tensor, other: Any) -> Any:
    """In-place version of ne."""
    return in_place(_step, input, G.ne, other)


def lt_(input: Tensor, other: Any) -> Any:
    """In-place version of lt."""
    return in_place(_step, input, G.lt, other)


def le_(input: Tensor, other: Any) -> Any:
    """In-place version of le."""
    return in_place(_step, input, G.le, other)


def gt_(input: Tensor, other: Any) -> Any:
    """In-place version of gt."""
    return in_place(_step, input, G.gt, other)


def ge_(input: Tensor, other: Any) -> Any:
    """In-place version of ge."""
    return in_place(_step, input, G.ge, other)


not_equal_ = ne_
less_ = lt_
less_equal_ = le_
greater_ = gt_
greater_equal_ = ge_
