"""The gradient of a variance."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Dims


@declare(fresh=True)
def var_grad(grad: Any, input: Any, dim: Dims, correction: float, keepdim: bool) -> Any:
    """The gradient of a variance: twice the distance from the mean, over the corrected count."""
    shape = tuple(input.shape)
    axes = range(len(shape)) if dim is None or dim == () or shape == () else dim
    freedom = math.prod([shape[a] for a in axes]) - correction
    factor = 2 / freedom if freedom > 0 else math.nan if freedom == 0 else 2 / freedom
    if len(shape) > 1:
        grad = F.restore_reduced(grad, shape, dim, keepdim)
    mean = F.mean(input, dim, True) if dim else F.mean_all(input)
    return F.to_dtype(F.times(grad, factor) * (input - mean), input.dtype)
