"""Gradients of pairs of extrema."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def aminmax_grad(grad_min: Any, grad_max: Any, input: Any, min: Any, max: Any, dim: int | None, keepdim: bool) -> Any:
    """The gradient of the smallest and the largest together."""
    dims = None if dim is None else (dim,)
    shape = tuple(input.shape)
    to_min = F.expand_reduced(grad_min, shape, dims, keepdim) * F.shares(input, min, dims, keepdim)
    to_max = F.expand_reduced(grad_max, shape, dims, keepdim) * F.shares(input, max, dims, keepdim)
    return to_min + to_max
