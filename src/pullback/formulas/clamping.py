"""Gradients at bounds and ties."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare


@declare(fresh=True)
def share_of_tie(grad: Any, loses: Any, ties: Any) -> Any:
    """The gradient of one of two candidates: nothing where it loses, half at a tie."""
    return F.drop_where(loses, F.where(ties, grad / 2, grad))


@declare(fresh=True)
def clamp_grad(grad: Any, input: Any, min: Any, max: Any) -> Any:
    """The gradient of a clamped input: passed on inside the bounds, which belong to the inside."""
    if min is None:
        return F.keep_where(input <= max, grad)
    if max is None:
        return F.keep_where(input >= min, grad)
    return F.keep_where(F.logical_and(input >= min, input <= max), grad)


@declare(fresh=True)
def clamp_grad_min(grad: Any, input: Any, min: Any, max: Any) -> Any:
    """The gradient of a lower bound: where it was applied and did not exceed the upper one."""
    applied = input < min
    return F.keep_where(applied if max is None else F.logical_and(applied, min < max), grad)


@declare(fresh=True)
def clamp_grad_max(grad: Any, input: Any, min: Any, max: Any) -> Any:
    """The gradient of an upper bound: where it was applied, or was below the lower one."""
    applied = input > max
    return F.keep_where(applied if min is None else F.logical_or(applied, max < min), grad)
