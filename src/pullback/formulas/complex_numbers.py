"""Gradients of functions that are not holomorphic."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare


def angle_grad(grad: Any, input: Any) -> Any:
    """The gradient of the angle: zero at zero, and everywhere on the reals."""
    if not is_complex_value(input):
        return F.zeros_of(grad)
    magnitude = F.abs(input)
    return F.where(magnitude == 0, 0, grad * (input * 1j) / (magnitude * magnitude))


@declare(twin="recorded")
def real_part(input: Any) -> Any:
    """A view of the real part; on arrays the kernels of these names serve."""
    if not is_complex_value(input):
        return input
    return F.select(F.view_as_real(input), -1, 0)


@declare(twin="recorded")
def imaginary_part(input: Any) -> Any:
    """A view of the imaginary part."""
    return F.select(F.view_as_real(input), -1, 1)


def sgn_of_angle(angle: Any) -> Any:
    """The number on the unit circle at an angle."""
    return F.complex(F.cos(angle), F.sin(angle))


def is_complex_value(value: Any) -> bool:
    """Whether an array or Tensor is complex."""
    return bool(getattr(value, "_array", value).dtype.kind in "cW")
