"""Gradients of rounding and sign functions."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def copysign_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of copysign: the sign that was applied, and zero where the input is zero."""
    return F.where(input == 0, 0, grad * (result / input))


def exp2_of(exponent: Any, like: Any) -> Any:
    """2 to an integer power, in the dtype of `like`."""
    return F.exp2(F.to_dtype(exponent, like.dtype))
