"""Gradients of signs and magnitudes."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def copysign_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of copysign: the sign that was applied, and zero where the input is zero."""
    return grad * F.drop_where(input == 0, result / input)


def sgn_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of sgn: what is tangential to the unit circle, over the magnitude."""
    if not F.is_complex_value(input):
        return F.zeros_in_shape_of(grad)
    magnitude = F.abs(input)
    radial = F.real_part(grad * F.conj(result)) * result
    return F.where(magnitude == 0, 0, (grad - radial) / magnitude)
