"""Gradients of rearranged copies."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Shape


@declare(fresh=True)
def roll_back(grad: Any, shifts: Shape, dims: Shape) -> Any:
    """The gradient of `roll`: rolled the other way."""
    return F.roll(grad, tuple([-s for s in shifts]), dims)


@declare(fresh=True, twin="passes")
def repeat_back(grad: Any, shape: Shape, repeats: Shape) -> Any:
    """The gradient of `repeat`: the sum over the repetitions."""
    if 0 in repeats:
        return F.zeros_in_shape(grad, shape)
    leading = len(repeats) - len(shape)
    for _ in range(leading):
        grad = F.sum(grad, (0,), False)
    sizes: list[int] = []
    summed = []
    for size, count in zip(shape, repeats[leading:], strict=True):
        if count != 1:
            summed.append(len(sizes))
            sizes.append(count)
        sizes.append(size)
    return F.sum(F.reshape(grad, tuple(sizes)), tuple(summed), False) if summed else grad
