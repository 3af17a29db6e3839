"""The logarithm of the gamma function, to 0.6 ulp or so.

Stirling's formula from 8 on, where smaller numbers are brought by a product, is a difference of large terms. So its
logarithms and products are carried as sums of two numbers. Beside the zeros at 1 and 2 a polynomial is better.
"""

from __future__ import annotations

import numpy as np

from pullback.kernels import special_coefficients as table
from pullback.kernels.special_evaluation import (
    _branch,
    _multiply_exactly,
    _polynomial,
    _product_remainder,
    _sin_pi,
    _sum_remainder,
)
from pullback.typing import Array

_STIRLING_CONSTANT = (0.4189385332046727, 1.6728209650585413e-17)  # log(2 pi) / 2 - 1/2
_LOG_2_HIGH, _LOG_2_LOW = 0.693147180601954460, -4.20091507268108460e-11  # the first has 32 bits
_FARTHEST = -20.0


def _lgamma(x: Array) -> Array:
    return _branch((x > _FARTHEST) & (x < 8.0), _lgamma_central, _lgamma_outside, x)


def _lgamma_central(x: Array) -> Array:
    near_one = np.abs(x - 1.0) <= 0.25
    return _branch(near_one | (np.abs(x - 2.0) <= 0.25), _lgamma_near_zeros, _lgamma_shifted, x)


def _lgamma_near_zeros(x: Array) -> Array:
    slope = _branch(
        x < 1.5,
        lambda x: _polynomial(table.LGAMMA_NEAR_ONE, x - 1.0),
        lambda x: _polynomial(table.LGAMMA_NEAR_TWO, x - 2.0),
        x,
    )
    return (x - np.where(x < 1.5, 1.0, 2.0)) * slope + 0.0  # of zeros the positive one


def _lgamma_shifted(x: Array) -> Array:
    """Return Stirling's formula at x + n less the logarithm of x (x + 1) ... (x + n - 1)."""
    shifts = 8.0 + np.ceil(np.maximum(-x, 0.0))
    head, tail = x, np.zeros_like(x)
    for step in range(1, int(shifts.max())):
        factor, rest = _sum_remainder(x, float(step))
        last = step >= shifts
        product, product_rest = _multiply_exactly(head, tail, factor)
        product_rest += head * rest
        head, tail = np.where(last, head, product), np.where(last, tail, product_rest)
    high, low = _stirling(*_sum_remainder(x, shifts))
    logarithm, logarithm_rest = _log(np.abs(head), np.copysign(1.0, head) * tail)
    value, rest = _sum_remainder(high, -logarithm)
    result = value + (rest + (low - logarithm_rest))
    positions = np.flatnonzero((np.abs(result) < 0.1) & (x < -2.0))
    if positions.size:
        result[positions] = _lgamma_near_negative_zero(x.take(positions))
    return np.where(head == 0.0, np.inf, result)


def _lgamma_outside(x: Array) -> Array:
    return _branch(x < 0.0, _lgamma_negative, _lgamma_large, x)


def _lgamma_large(x: Array) -> Array:
    high, low = _stirling(np.minimum(x, 1e306), np.zeros_like(x))
    return np.where(x > 1e306, x * np.inf, high + low)


def _lgamma_negative(x: Array) -> Array:
    # gamma(x) gamma(-x) = -pi / (x sin(pi x)).
    magnitude = -x
    result = np.log(np.pi / (magnitude * np.abs(_sin_pi(x)))) - _lgamma_large(magnitude)
    return np.where(x < -4.5e15, np.inf, result)


def _stirling(z: Array, z_rest: Array) -> tuple[Array, Array]:
    """Return (z - 1/2) (log(z) - 1) + log(2 pi) / 2 - 1/2 + 1 / (12 z) - ... as a sum of two numbers."""
    logarithm, logarithm_rest = _log(z, z_rest)
    scale = np.where(z > 1e100, 2.0**-500, 1.0)  # so that no product overflows before the result does
    factor, factor_rest = _sum_remainder(z * scale, -0.5 * scale)
    product, rest = _product_remainder(factor, logarithm - 1.0)
    inverse = 1.0 / z
    rest += factor * logarithm_rest + (factor_rest + z_rest) * (logarithm - 1.0)
    rest += (inverse * _polynomial(table.STIRLING, inverse * inverse) + _STIRLING_CONSTANT[1]) * scale
    total, total_rest = _sum_remainder(product, _STIRLING_CONSTANT[0] * scale)
    return total / scale, (rest + total_rest) / scale


def _log(x: Array, x_rest: Array) -> tuple[Array, Array]:
    """Return the logarithm of a sum of two numbers as such a sum.

    x = 2**k m, and log(m) = log(c) + 2 artanh(s) with s = (m - c) / (m + c), c the nearest of 16 numbers.
    """
    fraction, exponent = np.frexp(x)
    mantissa, exponent = 2.0 * fraction, exponent - 1.0
    place = ((mantissa - 1.0) * 16.0).astype(np.intp) & 15
    centre = 1.0 + (place + 0.5) / 16.0
    difference = mantissa - centre
    divisor, divisor_rest = _sum_remainder(mantissa, centre)
    ratio = difference / divisor
    product, product_rest = _product_remainder(ratio, divisor)
    ratio_rest = (((difference - product) - product_rest) - ratio * divisor_rest) / divisor
    square = ratio * ratio
    rest = 2.0 * ratio_rest + ratio * square * _polynomial(_ARTANH, square) + x_rest / x
    rest += exponent * _LOG_2_LOW + np.take(table.LOGARITHMS_LOW, place)
    total, total_rest = _sum_remainder(exponent * _LOG_2_HIGH, np.take(table.LOGARITHMS_HIGH, place))
    total, last_rest = _sum_remainder(total, 2.0 * ratio)
    rest += total_rest + last_rest
    high = total + rest
    return high, rest - (high - total)


_ARTANH = (2 / 11, 2 / 9, 2 / 7, 2 / 5, 2 / 3)


def _lgamma_near_negative_zero(x: Array) -> Array:
    """Return lgamma(x) where it is small, x in [-20, -2]: the product 1 / gamma(x) is formed with twice the digits.

    1 / gamma(x) = x (x + 1) ... (x + n - 1) / gamma(x + n), where x + n lies in [1, 2].
    """
    shifts = 1.0 - np.floor(x)
    offset = x + (shifts - 1.0)
    head, tail = np.zeros_like(x), np.zeros_like(x)
    for high, low in zip(table.RECIPROCAL_GAMMA_HIGH, table.RECIPROCAL_GAMMA_LOW, strict=True):
        head, tail = _multiply_exactly(head, tail, offset)
        head, rest = _sum_remainder(head, high)
        tail = tail + low + rest
    for step in range(int(shifts.max())):
        head, tail = _multiply_exactly(head, tail, np.where(step < shifts, x + step, 1.0))
    sign = np.copysign(1.0, head)
    logarithm: Array = np.log1p((sign * head - 1.0) + sign * tail)
    return -logarithm
