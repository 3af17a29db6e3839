"""Comparisons of whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.graph.in_place import in_place
from pullback.graph.zero_gradient import attach_zero_node
from pullback.kernels.comparison import equal_arrays
from pullback.modes.interception import interceptable
from pullback.tensor.tensor import Tensor


@interceptable
@declare(complex32=True, without_gradient=True, found="torch and method")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements.

    A Python bool; NaN equals nothing, itself neither. `eq` compares element by element, `allclose` up to rounding.

    >>> import pullback
    >>> pullback.equal(pullback.tensor([1, 2]), pullback.tensor([1, 2]))
    True
    """
    if input is other and input._array.dtype.kind not in "fcV":
        return True
    return equal_arrays(input._array, other._array)


@interceptable
@declare(complex32=True, found="torch and method")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most `atol + rtol * |other|`.

    Both have shapes that broadcast; the answer is a Python bool. NaN equals NaN only with `equal_nan`. |input -
    other| <= atol + rtol * |other|, with rtol 1e-5 and atol 1e-8 unless given.
    """
    close: Any = G.isclose(input, other, rtol, atol, equal_nan)
    return bool(close._array.all())


def _stepping(compare: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison whose outcome is numbers, which depend on both sides with the gradient zero."""
    node = f"{compare.__name__.capitalize()}Backward"

    def step(input: Tensor, other: Any) -> Any:
        outcome = G.to_dtype(compare(input, other), input._array.dtype)
        if isinstance(other, Tensor):
            if input._requires_grad or other._requires_grad:
                attach_zero_node(outcome, f"{node}1", (input, other))
        elif input._requires_grad:
            attach_zero_node(outcome, f"{node}0", (input,))
        return outcome

    step.__name__ = compare.__name__
    return step


_EQ, _NE, _LT, _LE, _GT, _GE = map(_stepping, (G.eq, G.ne, G.lt, G.le, G.gt, G.ge))


@declare(found="method")
def eq_(input: Tensor, other: Any) -> Any:
    """In-place version of eq."""
    return in_place(_EQ, input, other)


@declare(found="method")
def ne_(input: Tensor, other: Any) -> Any:
    """In-place version of ne."""
    return in_place(_NE, input, other)


@declare(found="method")
def lt_(input: Tensor, other: Any) -> Any:
    """In-place version of lt."""
    return in_place(_LT, input, other)


@declare(found="method")
def le_(input: Tensor, other: Any) -> Any:
    """In-place version of le."""
    return in_place(_LE, input, other)


@declare(found="method")
def gt_(input: Tensor, other: Any) -> Any:
    """In-place version of gt."""
    return in_place(_GT, input, other)


@declare(found="method")
def ge_(input: Tensor, other: Any) -> Any:
    """In-place version of ge."""
    return in_place(_GE, input, other)


not_equal_ = ne_
less_ = lt_
less_equal_ = le_
greater_ = gt_
greater_equal_ = ge_
