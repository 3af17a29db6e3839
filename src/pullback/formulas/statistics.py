"""The gradient of a variance."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Dims


@declare(fresh=True)
def var_grad(grad: Any, input: Any, dim: Dims, correction: float, keepdim: bool) -> Any:
    """The gradient of a variance: twice the distance from the mean, over the corrected count.

    Where everything is reduced and nothing is left of the count, it is a constant: nan at the mean, infinite elsewhere.
    """
    shape = tuple(input.shape)
    is_whole = not dim or shape == ()
    freedom = math.prod(shape if is_whole else [shape[axis] for axis in dim or ()]) - correction
    if len(shape) > 1:
        grad = F.restore_reduced(grad, shape, dim, keepdim)
    mean = F.mean_all(input) if is_whole else F.mean(input, dim, True)
    if is_whole and freedom <= 0:
        return F.to_dtype(grad * F.where(input == mean, math.nan, math.inf), input.dtype)
    factor = 2 / freedom if freedom else math.inf
    return F.to_dtype(F.times(grad, factor) * (input - mean), input.dtype)
