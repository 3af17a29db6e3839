"""The gradient of a vector norm."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Dims


def div_or_zero(input: Any, other: Any) -> Any:
    """The quotient, zero where it would be a division by zero."""
    return F.drop_where(other == 0, input / other)


@declare(twin="passes")
def unit_or_zero(input: Any, other: Any) -> Any:
    """Numbers divided by their norm; zero where the norm is zero."""
    return F.div_or_zero(input, other)


def pow_or_zero(input: Any, exponent: float) -> Any:
    """A real power of numbers that are not negative, zero for zero."""
    return F.drop_where(input == 0, F.pow_scalar(input, exponent))


def vector_norm_grad(grad: Any, input: Any, ord: Any, dim: Dims, keepdim: bool, result: Any) -> Any:
    """The gradient of a vector norm; zero where the norm is zero."""
    shape = tuple(input.shape)
    grad = F.restore_reduced(grad, shape, dim, keepdim)
    result = F.restore_reduced(result, shape, dim, keepdim)
    if ord == 0:
        return grad * 0 * input
    if ord == 1:
        return F.sgn(input) * grad
    if ord == 2:
        return F.to_dtype(grad * F.unit_or_zero(input, result), input.dtype)
    if math.isinf(ord):
        return F.sgn(input) * F.extremum_grad(grad, F.abs(input), result, dim, True)
    return F.to_dtype(_general_norm_grad(grad, input, float(ord), result), input.dtype)


def _general_norm_grad(grad: Any, input: Any, order: float, result: Any) -> Any:
    """sgn(x) (|x| / norm)^(p - 1) grad, with zero for zero."""
    if order < 1:
        scaled = F.sgn(input) * F.pow_or_zero(F.abs(input), order - 1)
        return scaled * grad * F.pow_scalar(result, 1 - order)
    if order < 2:
        scaled = F.sgn(input) * F.pow_scalar(F.abs(input), order - 1)
    else:
        scaled = input * F.pow_scalar(F.abs(input), order - 2)
    return scaled * F.div_or_zero(grad, F.pow_scalar(result, order - 1))


def renorm_grad(grad: Any, input: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """The gradient of renorm: through the factor and through the norm, where there is a factor."""
    others = tuple([axis for axis in range(input.ndim) if axis != dim])
    norms = F.linalg_vector_norm(input, p, others, True)
    inverse = F.reciprocal(norms + 1e-7)
    pulled = F.sum(F.to_dtype(F.conj(input) * grad, norms.dtype), others, True)
    through_norms = inverse * F.vector_norm_grad(pulled, input, p, others, True, norms)
    return F.where(norms > maxnorm, F.to_dtype(inverse * maxnorm * (grad - through_norms), input.dtype), grad)
