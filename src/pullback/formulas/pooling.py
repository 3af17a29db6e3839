"""Pooling whose number of dimensions is that of its window."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Shape


def avg_pool_nd(
    input: Any, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Any:  # fmt: skip
    """Average pooling over as many dimensions as the window has."""
    if len(kernel_size) == 2:
        return F.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return F.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@declare(twin="passes")
def unpool_back(grad: Any, indices: Any, dims: int) -> Any:
    """The gradient of `max_unpool2d` and its like: the elements at flat positions in planes."""
    lead, planes = tuple(grad.shape[: grad.ndim - dims]), grad.shape[grad.ndim - dims :]
    flat = F.reshape(grad, (*lead, math.prod(planes)))
    places = F.reshape(indices, (*lead, math.prod(indices.shape[grad.ndim - dims :])))
    return F.reshape(F.gather(flat, -1, places), tuple(indices.shape))
