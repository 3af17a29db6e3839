"""Arithmetic on numbers that rules need."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Scalar


@declare(exact=True)
def scaled_by(grad: Any, value: Scalar) -> Any:
    """Multiply by the conjugate of a number: the gradient of an argument scaled by it."""
    return grad * value.conjugate()


def conj(input: Any) -> Any:
    """The complex conjugate; a real tensor itself, so that nothing is recorded."""
    return F.conjugated(input) if F.is_complex_value(input) else input


@declare(exact=True)
def conj_number(value: Scalar) -> Scalar:
    """The complex conjugate of a Python number."""
    return value.conjugate()
