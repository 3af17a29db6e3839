"""Gradients of rearranged copies."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Shape


@declare(fresh=True)
def roll_back(grad: Any, shifts: Shape, dims: Shape) -> Any:
    """The gradient of `roll`: rolled the other way."""
    return F.roll(grad, tuple([-s for s in shifts]), dims)


@declare(fresh=True)
def repeat_back(grad: Any, shape: Shape, repeats: Shape) -> Any:
    """The gradient of `repeat`: the sum over the repetitions."""
    whole = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    if 0 in repeats or math.prod(shape) == 0:
        return F.zeros_in_shape(grad, shape)
    parts = tuple([n for pair in zip(repeats, whole, strict=True) for n in pair])
    if not parts:
        return grad
    return F.reshape(F.sum(F.reshape(grad, parts), tuple(range(0, 2 * len(repeats), 2)), False), shape)
