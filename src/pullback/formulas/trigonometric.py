"""Gradients of circular functions that need more than a line."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F


def sinc_grad(grad: Any, input: Any) -> Any:
    """The gradient of sin(pi x) / (pi x): zero at zero."""
    angle = input * math.pi
    area = input * input * math.pi
    slope = F.exactly((angle * F.cos(angle) - F.sin(angle)) / area, F.sinc_slope(input))
    return F.where(area == 0, 0, grad * F.conj(slope))


def acosh_slope(input: Any) -> Any:
    """The derivative of acosh; in the complex plane each root has its own branch."""
    if F.is_complex_value(input):
        return F.rsqrt(input - 1) * F.rsqrt(input + 1)
    return F.rsqrt(F.exactly(input * input - 1, (input - 1) * (input + 1)))


def over_square_radius(input: Any, other: Any) -> Any:
    """One over the squared distance from the origin; zero at the origin."""
    square = input * input + other * other
    return F.drop_where(square == 0, F.reciprocal(square))
