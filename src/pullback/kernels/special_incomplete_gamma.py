"""The regularised incomplete gamma functions.

Next to x = a, for a from 20, Temme's uniform expansion is used; elsewhere the power series, or the continued fraction.
The error is some ulp; only for a beyond 400 and x outside [a / 2, 2 a], where the smaller of the two is below 1e-34, it
grows with the logarithm of the result, to about 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pullback.kernels import special_coefficients as table
from pullback.kernels.special import _erfcx_positive
from pullback.kernels.special_evaluation import _branch, _elementwise, _polynomial, _product_remainder, _rational
from pullback.kernels.special_gamma import _lgamma_one_plus
from pullback.native import by_element
from pullback.typing import Array

_EPSILON = 2.0**-54
_MOST_STEPS = 2000
_LEVELS = 90.0


@by_element
def igamma(input: Array, other: Array) -> Array:
    """Compute the lower regularised incomplete gamma function P(input, other)."""
    return _elementwise(lambda a, x: _with_edges(_lower, 0.0, a, x), input, other)


@by_element
def igammac(input: Array, other: Array) -> Array:
    """Compute the upper regularised incomplete gamma function Q(input, other) = 1 - P."""
    return _elementwise(lambda a, x: _with_edges(_upper, 1.0, a, x), input, other)


def _with_edges(formula: Callable[[Array, Array], Array], at_zero: float, a: Array, x: Array) -> Array:
    """Evaluate the formula inside its domain, and the limits and nans on its border; at_zero is the value at x = 0."""
    inside = (a > 0.0) & (x > 0.0) & np.isfinite(a) & np.isfinite(x)
    return _branch(inside, formula, lambda a, x: _edge_values(at_zero, a, x), a, x)


def _edge_values(at_zero: float, a: Array, x: Array) -> Array:
    at_infinity = 1.0 - at_zero
    value = np.where(np.isinf(x), at_infinity, a + x)
    value = np.where(np.isinf(a), np.where(np.isinf(x), np.nan, at_zero), value)
    value = np.where(x == 0.0, at_zero, value)
    value = np.where(a == 0.0, np.where(x > 0.0, at_infinity, np.nan), value)
    return np.where((a < 0.0) | (x < 0.0), np.nan, value)


def _lower(a: Array, x: Array) -> Array:
    return _branch(_is_transitional(a, x), _lower_uniform, _lower_elsewhere, a, x)


def _upper(a: Array, x: Array) -> Array:
    return _branch(_is_transitional(a, x), _upper_uniform, _upper_elsewhere, a, x)


def _is_transitional(a: Array, x: Array) -> Array:
    near: Array = (a >= 20.0) & (np.abs(x - a) <= 0.3 * a)
    return near


def _lower_elsewhere(a: Array, x: Array) -> Array:
    value = _branch((x > 1.0) & (x > a), lambda a, x: 1.0 - _upper_fraction(a, x), _lower_series, a, x)
    return np.minimum(value, 1.0)


def _upper_elsewhere(a: Array, x: Array) -> Array:
    return _branch(x > 1.1, _upper_beyond, _upper_small, a, x)


def _upper_beyond(a: Array, x: Array) -> Array:
    return _branch(x < a, lambda a, x: 1.0 - _lower_series(a, x), _upper_fraction, a, x)


def _upper_small(a: Array, x: Array) -> Array:
    # Where P is below about 0.9 nothing is lost in 1 - P.
    limit = np.where(x <= 0.5, -0.4 / np.log(x), 0.75 * x)
    return _branch(limit < a, lambda a, x: 1.0 - _lower_series(a, x), _upper_series, a, x)


def _lower_uniform(a: Array, x: Array) -> Array:
    side = _smaller_side(a, x)
    return np.where(x < a, side, 1.0 - side)


def _upper_uniform(a: Array, x: Array) -> Array:
    side = _smaller_side(a, x)
    return np.where(x < a, 1.0 - side, side)


def _smaller_side(a: Array, x: Array) -> Array:
    """Return P left of x = a and Q right of it, by Temme's expansion.

    With eta**2 / 2 = mu - log1p(mu) and mu = x / a - 1, Q = erfc(eta sqrt(a / 2)) / 2 + R, where
    R = exp(-a eta**2 / 2) / sqrt(2 pi a) * sum over k of c_k(eta) a**-k; P has eta and R of the other sign.
    """
    exponent, rest, relative = _decay_exponent(a, x)
    eta = np.copysign(np.sqrt(2.0 * exponent / a), relative)
    series = _polynomial(table.TEMME[0], eta)
    for coefficients in table.TEMME[1:]:
        series /= a
        series += _polynomial(coefficients, eta)
    series *= np.where(relative < 0.0, -1.0, 1.0) / np.sqrt(2.0 * math.pi * a)
    series += 0.5 * _erfcx_positive(np.sqrt(exponent))
    return series * (np.exp(-exponent) * (1.0 - rest))


def _decay_exponent(a: Array, x: Array) -> tuple[Array, Array, Array]:
    """Return a (mu - log1p(mu)) as a sum of two numbers, and mu = x / a - 1 in [-0.5, 1].

    Its absolute error is the relative error of the result, so the leading term a mu**2 / 2 is kept in twice the digits.
    """
    difference = x - a
    relative = difference / a
    product, product_rest = _product_remainder(relative, a)
    relative_rest = ((difference - product) - product_rest) / a
    square, square_rest = _product_remainder(relative, difference)
    square_rest += relative_rest * difference
    cubic = square * relative * _rational(table.LOG1P_CUBIC_P, table.LOG1P_CUBIC_Q, relative + 0.5)
    half = 0.5 * square
    exponent = half - cubic
    return exponent, ((half - exponent) - cubic) + 0.5 * square_rest, relative


def _density(a: Array, x: Array) -> Array:
    """Return x**a exp(-x) / gamma(a + 1)."""
    return _branch(
        a < 1.0, _density_small, lambda a, x: _branch(a < 400.0, _density_middle, _density_large, a, x), a, x
    )


def _density_small(a: Array, x: Array) -> Array:
    return np.power(x, a) * np.exp(-x) * _polynomial(table.RECIPROCAL_GAMMA, a)


def _density_middle(a: Array, x: Array) -> Array:
    # (x / a)**a, corrected for the rounding of x / a. The square root is formed first: its factors stay in range.
    bounded = np.minimum(x, 2000.0)
    ratio = bounded / a
    product, product_rest = _product_remainder(ratio, a)
    correction = ((bounded - product) - product_rest) / np.maximum(ratio, 1e-300)
    root = np.power(ratio, 0.5 * a) * np.exp(0.5 * a) * np.exp(-0.5 * bounded)
    result: Array = root * root * (1.0 + correction) / _stirling_factor(a)
    return result


def _density_large(a: Array, x: Array) -> Array:
    near = (x >= 0.5 * a) & (x <= 2.0 * a)
    decay = _branch(near, _decay_near, lambda a, x: np.exp(a * np.log(x / a) - (x - a)), a, x)
    return decay / _stirling_factor(a)


def _decay_near(a: Array, x: Array) -> Array:
    exponent, rest, _ = _decay_exponent(a, x)
    return np.exp(-exponent) * (1.0 - rest)


def _stirling_factor(a: Array) -> Array:
    """Return gamma(a + 1) / (a / e)**a for a >= 1."""
    return np.sqrt(2.0 * math.pi * a) * _rational(table.SCALED_GAMMA_P, table.SCALED_GAMMA_Q, 1.0 / a)


def _lower_series(a: Array, x: Array) -> Array:
    """Sum P = density * (1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ...)."""
    term = np.ones_like(x)
    total = np.ones_like(x)
    shifted = a.copy()
    for _ in range(_MOST_STEPS):
        shifted += 1.0
        term *= x
        term /= shifted
        total += term
        if not np.any(term > _EPSILON * total):
            break
    return _density(a, x) * total


def _upper_series(a: Array, x: Array) -> Array:
    """Sum Q = 1 - x**a / gamma(a + 1) * (1 + a * sum over n of (-x)**n / ((a + n) n!)) for small a and x."""
    factor = np.ones_like(x)
    total = np.zeros_like(x)
    for n in range(1, 40):
        factor *= x / -n
        term = factor / (a + n)
        total += term
        if not np.any(np.abs(term) > _EPSILON * np.abs(total)):
            break
    exponent = a * np.log(x) - _lgamma_one_plus(a)
    result: Array = -np.expm1(exponent) - a * np.exp(exponent) * total
    return result


def _upper_fraction(a: Array, x: Array) -> Array:
    """Evaluate Q = a density / (x + 1 - a + 1 (a - 1) / (x + 3 - a + 2 (a - 2) / (x + 5 - a + ...))) from its end.

    The number of levels that reach full accuracy falls as 1 / x; backwards, rounding errors do not add up.
    """
    levels = int(_LEVELS / float(np.min(x))) + 40
    first = x + (1.0 - a)
    fraction = first + 2.0 * levels
    for n in range(levels, 0, -1):
        fraction = (first + (2.0 * n - 2.0)) + n * (a - n) / fraction
    return a * _density(a, x) / fraction
