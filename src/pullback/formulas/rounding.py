"""Gradients of rounding and sign functions."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.typing import DType


def copysign_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of copysign: the sign that was applied, and zero where the input is zero."""
    return F.where(input == 0, 0, grad * (result / input))


def exp2_of(exponent: Any, dtype: DType) -> Any:
    """2 to an integer power, in a floating-point dtype."""
    return F.exp2(F.to_dtype(exponent, dtype))
