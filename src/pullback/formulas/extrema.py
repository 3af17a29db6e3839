"""Gradients of pairs of extrema."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Dims


@declare(fresh=True)
def extremum_grad(grad: Any, input: Any, extreme: Any, dim: Dims, keepdim: bool) -> Any:
    """The gradient of amax and amin: in equal shares to all elements that are the extreme."""
    return F.expand_reduced(grad, tuple(input.shape), dim, keepdim) * F.share_among_equals(input, extreme, dim, keepdim)


def aminmax_grad(grad_min: Any, grad_max: Any, input: Any, min: Any, max: Any, dim: int | None, keepdim: bool) -> Any:
    """The gradient of the smallest and the largest together."""
    dims = None if dim is None else (dim,)
    to_min = F.extremum_grad(grad_min, input, min, dims, keepdim)
    return to_min + F.extremum_grad(grad_max, input, max, dims, keepdim)
