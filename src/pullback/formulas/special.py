"""Derivatives of special functions that need more than a line."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def mvlgamma_slope(input: Any, p: int) -> Any:
    """The derivative of the multivariate lgamma: the sum of digamma at the shifted arguments."""
    total = F.digamma(input)
    for j in range(1, p):
        total = total + F.digamma(input - j / 2)
    return total


def gamma_density(shape: Any, value: Any) -> Any:
    """The density of the gamma distribution, which is the derivative of igamma."""
    return F.exp((shape - 1) * F.log(value) - value - F.lgamma(shape))


def i1_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of i1: i0(x) - i1(x) / x, which is 1/2 at zero."""
    large = F.abs(input) > 2.2e-16
    safe = F.where(large, input, 2.2e-16)
    return grad * F.where(large, F.i0(safe) - result * F.reciprocal(safe), 0.5)


def i1e_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of i1e: i0e(x) - i1e(x) (sgn(x) + 1 / x), which is 1/2 at zero."""
    large = F.abs(input) > 2.2e-16
    safe = F.where(large, input, 2.2e-16)
    return grad * F.where(large, F.i0e(safe) - result * (F.sgn(safe) + F.reciprocal(safe)), 0.5)


def erfinv_slope(input: Any) -> Any:
    """The derivative of erfinv, from its input: the result may be overwritten."""
    return F.exp(F.pow_scalar(F.erfinv(input), 2)) * 0.886226925452758
