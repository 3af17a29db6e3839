"""Gradients of losses that PyTorch computes in one operation."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F


def loss_weight(grad: Any, count: int, reduction: int) -> Any:
    """The gradient of one loss, given that of the reduced losses."""
    return grad / max(count, 1) if reduction == 1 else grad


def _count_of(tensor: Any) -> int:
    return math.prod(tuple(tensor.shape))


def mse_loss_grad(grad: Any, input: Any, target: Any, reduction: int) -> Any:
    """The gradient of mse_loss with respect to its input."""
    return F.loss_weight(grad, _count_of(input), reduction) * (input - target) * 2
