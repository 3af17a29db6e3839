"""Arithmetic on numbers that rules need."""

from __future__ import annotations

from pullback.typing import Scalar


def conj_number(value: Scalar) -> Scalar:
    """The complex conjugate of a Python number."""
    return value.conjugate()
