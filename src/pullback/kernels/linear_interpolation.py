"""Linear interpolation between two arrays, element by element."""

from __future__ import annotations

import numpy as np

from pullback.checks import checked
from pullback.checks.numbers import checked_number
from pullback.kernels.dtype_support import _in_float32
from pullback.native import native
from pullback.typing import Array, Scalar


@native
@_in_float32
@checked
def lerp(input: Array, end: Array, weight: Array) -> Array:
    """Interpolate linearly from `input` to `end`."""
    step = end - input
    return np.where(np.abs(weight) < 0.5, input + weight * step, end - step * (1 - weight))


@native
@_in_float32
@checked
def lerp_scalar(input: Array, end: Array, weight: Scalar) -> Array:
    """As lerp, by a number."""
    if isinstance(weight, complex):
        weight = checked_number(weight, input.dtype)
    step = end - input
    return input + weight * step if abs(weight) < 0.5 else end - step * (1 - weight)
