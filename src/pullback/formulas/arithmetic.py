"""Arithmetic on numbers that rules need."""

from __future__ import annotations

from typing import Any

from pullback.typing import Scalar


def scaled_by(grad: Any, value: Scalar) -> Any:
    """Multiply by the conjugate of a number: the gradient of an argument scaled by it."""
    return grad * value.conjugate()


def conj_number(value: Scalar) -> Scalar:
    """The complex conjugate of a Python number."""
    return value.conjugate()
