"""Gradients of powers, with PyTorch's values where a factor is zero."""

from __future__ import annotations

import cmath
import math
from typing import Any

import pullback.generated as F
from pullback.typing import Scalar


def pow_grad_input(grad: Any, input: Any, exponent: Any) -> Any:
    """The gradient of the base, for an exponent that is a number."""
    if exponent == 0:
        return F.zeros_in_shape_of(grad)
    return grad * F.conj(F.pow_scalar(input, exponent - 1) * exponent)


def pow_grad_exponent(grad: Any, input: Any, exponent: Any, result: Any) -> Any:
    """The gradient of the exponent; a zero base stays zero under positive powers."""
    settled = F.logical_and(input == 0, _keeps_zero(exponent))
    return grad * F.where(settled, 0, F.conj(result * F.log(F.to_dtype(input, result.dtype))))


def pow_base_grad(grad: Any, exponent: Any, input: Any, result: Any) -> Any:
    """The gradient of the exponent, for a base that is a number."""
    if input == 0:
        return grad * F.where(_keeps_zero(exponent), 0, F.conj(result * -math.inf))
    return grad * F.conj(result * logarithm(input, F.is_complex_value(exponent)))


def _keeps_zero(exponent: Any) -> Any:
    """Whether zero to this power stays as it is when the exponent changes a little: it is real and not negative."""
    settled = F.real_part(exponent) >= 0
    return F.logical_and(settled, F.imaginary_part(exponent) == 0) if F.is_complex_value(exponent) else settled


def logarithm(value: Scalar, in_plane: bool) -> Scalar:
    """The logarithm of a number; of a negative one nan, unless the plane of complex numbers is meant."""
    if in_plane or isinstance(value, complex):
        return cmath.log(value)
    return math.log(value) if value > 0 else math.nan


def exp2_of(exponent: Any, like: Any) -> Any:
    """2 to an integer power, in the dtype of `like`."""
    return F.exp2(F.to_dtype(exponent, like.dtype))
