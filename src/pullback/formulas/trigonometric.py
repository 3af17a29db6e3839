"""Gradients of circular functions that need more than a line."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F


def sinc_grad(grad: Any, input: Any) -> Any:
    """The gradient of sin(pi x) / (pi x): zero at zero."""
    angle = input * math.pi
    slope = (angle * F.cos(angle) - F.sin(angle)) / (angle * input)
    return F.where(input == 0, 0, grad * F.conj(slope))
