"""Bessel functions of the first and second kind, orders 0 and 1, and the spherical one of order 0.

Errors are a few ulp; beyond x = 7 they are a few ulp of the envelope sqrt(2 / (pi x)), so that next to the third and
later zeros the result is exact only to that.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.kernels import special_coefficients as table
from pullback.kernels.special_evaluation import _branch, _elementwise, _polynomial, _rational
from pullback.native import by_device
from pullback.typing import Array

_INVERSE_SQRT_PI = 1.0 / math.sqrt(math.pi)
_TWO_OVER_PI = 2.0 / math.pi


@by_device
def bessel_j0(input: Array) -> Array:
    """Compute the Bessel function of the first kind of order 0."""
    return _elementwise(_j0, input)


@by_device
def bessel_j1(input: Array) -> Array:
    """Compute the Bessel function of the first kind of order 1."""
    return _elementwise(_j1, input)


@by_device
def bessel_y0(input: Array) -> Array:
    """Compute the Bessel function of the second kind of order 0; -inf at zero, nan below."""
    return _elementwise(_y0, input)


@by_device
def bessel_y1(input: Array) -> Array:
    """Compute the Bessel function of the second kind of order 1; -inf at zero, nan below."""
    return _elementwise(_y1, input)


@by_device
def spherical_bessel_j0(input: Array) -> Array:
    """Compute sin(x) / x: 1 at zero, 0 at infinity."""
    return _elementwise(_spherical_j0, input)


def _j0(x: Array) -> Array:
    return _branch(np.abs(x) <= 7.0, _j0_small, lambda x: _cosine_wave(table.P0, table.Q0, np.abs(x)), x)


def _j1(x: Array) -> Array:
    return _branch(np.abs(x) <= 7.0, _j1_small, _j1_large, x)


def _y0(x: Array) -> Array:
    value = _branch(x <= 3.0, _y0_small, lambda x: _branch(x <= 7.0, _y0_middle, _y0_large, x), x)
    return np.where(x < 0.0, np.nan, value)


def _y1(x: Array) -> Array:
    value = _branch(x <= 3.0, _y1_small, lambda x: _branch(x <= 7.0, _y1_middle, _y1_large, x), x)
    return np.where(x < 0.0, np.nan, value)


def _spherical_j0(x: Array) -> Array:
    quotient = np.where(x == 0.0, 1.0, np.sin(x) / x)
    return np.where(np.isinf(x), 0.0, quotient)


def _distance(x: Array, zero: tuple[float, float]) -> Array:
    """Return x - zero, where the zero is known to twice the digits."""
    return (x - zero[0]) - zero[1]


def _square_distance(x: Array, zero: tuple[float, float]) -> Array:
    """Return x**2 - zero**2 for x >= 0."""
    return _distance(x, zero) * (x + zero[0])


def _j0_small(x: Array) -> Array:
    return _branch(np.abs(x) < 1.0, _j0_tiny, _j0_between_zeros, x)


def _j0_tiny(x: Array) -> Array:
    square = x * x
    return 1.0 - square * _polynomial(table.J0_TINY, square)


def _j0_between_zeros(x: Array) -> Array:
    magnitude = np.abs(x)
    zeros = _square_distance(magnitude, table.J0_ZERO_1) * _square_distance(magnitude, table.J0_ZERO_2)
    return zeros * _polynomial(table.J0_SMALL, x * x - 49.0)


def _j1_small(x: Array) -> Array:
    magnitude = np.abs(x)
    zeros = _square_distance(magnitude, table.J1_ZERO_1) * _square_distance(magnitude, table.J1_ZERO_2)
    result: Array = x * (zeros * _polynomial(table.J1_SMALL, x * x - 49.0))
    return result


def _j1_large(x: Array) -> Array:
    return np.copysign(1.0, x) * _sine_wave(table.P1, table.Q1, np.abs(x))


def _y0_small(x: Array) -> Array:
    regular = _square_distance(x, table.Y0_ZERO_1) * _polynomial(table.Y0_SMALL, x * x - 9.0)
    result: Array = _TWO_OVER_PI * _log_ratio(x, table.Y0_ZERO_1) * _j0_small(x) + regular
    return result


def _y0_middle(x: Array) -> Array:
    zeros = _distance(x, table.Y0_ZERO_2) * _distance(x, table.Y0_ZERO_3)
    return zeros * _rational(table.Y0_MIDDLE_P, table.Y0_MIDDLE_Q, x - 3.0)


def _y0_large(x: Array) -> Array:
    return _sine_wave(table.P0, table.Q0, x)


def _y1_small(x: Array) -> Array:
    regular = _square_distance(x, table.Y1_ZERO_1) * _polynomial(table.Y1_SMALL, x * x - 9.0) / x
    value = _TWO_OVER_PI * _log_ratio(x, table.Y1_ZERO_1) * _j1_small(x) + regular
    return np.where(x == 0.0, -np.inf, value)


def _y1_middle(x: Array) -> Array:
    zeros = _distance(x, table.Y1_ZERO_2) * _distance(x, table.Y1_ZERO_3)
    return zeros * _rational(table.Y1_MIDDLE_P, table.Y1_MIDDLE_Q, x - 3.0)


def _y1_large(x: Array) -> Array:
    return -_cosine_wave(table.P1, table.Q1, x)


def _log_ratio(x: Array, zero: tuple[float, float]) -> Array:
    """Return log(x / zero), accurate relative to the result also next to the zero."""
    relative = _distance(x, zero) / zero[0]
    return np.where(np.abs(relative) < 0.5, np.log1p(relative), np.log(x) - math.log(zero[0]))


def _amplitudes(p: tuple[float, ...], q: tuple[float, ...], x: Array) -> tuple[Array, Array]:
    """Return P + Q and P - Q of Hankel's expansion, divided by sqrt(pi x)."""
    inverse = 1.0 / x
    square = inverse * inverse
    even, odd = _polynomial(p, square), inverse * _polynomial(q, square)
    scale = _INVERSE_SQRT_PI / np.sqrt(x)
    return (even + odd) * scale, (even - odd) * scale


def _cosine_wave(p: tuple[float, ...], q: tuple[float, ...], x: Array) -> Array:
    """Return sqrt(2 / (pi x)) (P cos(x - pi/4) - Q sin(x - pi/4)), expanded to functions of x itself."""
    cosine, sine = _amplitudes(p, q, x)
    cosine *= np.cos(x)
    sine *= np.sin(x)
    cosine += sine
    return cosine


def _sine_wave(p: tuple[float, ...], q: tuple[float, ...], x: Array) -> Array:
    """Return sqrt(2 / (pi x)) (P sin(x - pi/4) + Q cos(x - pi/4)), expanded to functions of x itself."""
    sine, cosine = _amplitudes(p, q, x)
    sine *= np.sin(x)
    cosine *= np.cos(x)
    sine -= cosine
    return sine
