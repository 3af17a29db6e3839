"""The gamma function's family: lgamma, digamma, polygamma, mvlgamma and the Hurwitz zeta function.

Errors are an ulp or two for positive arguments. On the negative axis digamma and odd derivatives cross zero once
between poles; the error there is an ulp or two of the reflection's larger term, not of the result.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pullback.checks import checked
from pullback.kernels import special_coefficients as table
from pullback.kernels.special_evaluation import (
    _branch,
    _elementwise,
    _polynomial,
    _rational,
    _sin_pi,
    _tan_pi,
)
from pullback.kernels.special_log_gamma import _lgamma
from pullback.native import by_device, by_element, native
from pullback.typing import Array

_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip
_MOST_REFLECTED = 30
# B(2j) / (2j)!, the coefficients of the Euler-Maclaurin formula.
_EULER_MACLAURIN = tuple(number / math.factorial(2 * j) for j, number in enumerate(_BERNOULLI, 1))


@native
def lgamma(input: Array) -> Array:
    """Compute log(abs(gamma(input))); inf at the poles.

    `input` has any shape, and the result has the same. gamma(n) = (n - 1)! for whole numbers n above 0.
    """
    return _elementwise(_lgamma, input)


@native
def digamma(input: Array) -> Array:
    """Compute the derivative of lgamma; -inf at 0, inf at -0.0, nan at the negative integers.

    `input` has any shape, and the result has the same. y = gamma'(input) / gamma(input).
    """
    return _elementwise(_digamma, input)


@by_device
def polygamma(n: int, input: Array) -> Array:
    """Compute the n-th derivative of digamma.

    Elementwise, for n >= 0: n = 0 is `digamma`, n = 1 is `trigamma`.

    >>> import pullback
    >>> pullback.polygamma(1, pullback.tensor([1.0]))
    tensor([1.6449])
    """
    if n == 0:
        return _elementwise(_digamma, input)
    if n == 1:
        return _elementwise(_trigamma, input)
    return _elementwise(lambda x: _polygamma(n, x), input)


@by_device
@checked
def mvlgamma(input: Array, p: int) -> Array:
    """Compute the logarithm of the multivariate gamma function of dimension p."""
    return _elementwise(lambda x: _mvlgamma(x, p), input)


@by_element
def zeta(input: Array, other: Array) -> Array:
    """Compute the Hurwitz zeta function, the sum over k of (other + k)**-input: inf at input 1, nan below."""
    return _elementwise(_zeta, input, other)


def _lgamma_one_plus(y: Array) -> Array:
    """Return lgamma(1 + y) for y in [-0.5, 1.5], accurate relative to y (four ulp)."""
    return y * (y - 1.0) * _rational(table.LGAMMA_SMALL_P, table.LGAMMA_SMALL_Q, y + 0.5)


def _mvlgamma(x: Array, p: int) -> Array:
    result = lgamma(x)
    for step in range(1, p):
        result += lgamma(x - 0.5 * step)
    return result + 0.25 * p * (p - 1) * math.log(math.pi)


def _digamma(x: Array) -> Array:
    return _branch((x > -0.5) & (x < 3.0), _digamma_small, _digamma_outside, x)


def _digamma_small(x: Array) -> Array:
    near_pole = x < 0.5
    shifted = np.where(near_pole, x + 1.0, x)
    head, tail = table.DIGAMMA_ROOT
    result = ((shifted - head) - tail) * _rational(table.DIGAMMA_SMALL_P, table.DIGAMMA_SMALL_Q, shifted - 0.5)
    result -= near_pole / np.where(near_pole, x, 1.0)
    return result


def _digamma_outside(x: Array) -> Array:
    return _branch(x < 0.0, _digamma_negative, _digamma_positive, x)


def _digamma_positive(x: Array) -> Array:
    return _branch(x < 8.0, _digamma_middle, _digamma_large, x)


def _digamma_middle(x: Array) -> Array:
    return _rational(table.DIGAMMA_MIDDLE_P, table.DIGAMMA_MIDDLE_Q, x - 3.0)


def _digamma_large(x: Array) -> Array:
    inverse = 1.0 / x
    square = inverse * inverse
    return np.log(x) - (0.5 * inverse + square * _polynomial(table.DIGAMMA_LARGE, square))


def _digamma_negative(x: Array) -> Array:
    # digamma(x) = digamma(1 - x) - pi / tan(pi x), and digamma(1 - x) = digamma(-x) - 1 / x.
    tangent = _tan_pi(x)
    reflected = (_digamma(-x) - 1.0 / x) - np.pi / tangent
    return np.where(tangent == 0.0, np.nan, reflected)


def _trigamma(x: Array) -> Array:
    return _branch(x < 0.0, _trigamma_negative, _trigamma_positive, x)


def _trigamma_positive(x: Array) -> Array:
    shifted = x + 8.0
    inverse = 1.0 / shifted
    square = inverse * inverse
    result = square * (0.5 + inverse * _polynomial(table.TRIGAMMA_LARGE, square))
    result += inverse
    for step in range(7, -1, -1):
        inverse = 1.0 / (x + step)
        inverse *= inverse
        result += inverse
    return result


def _trigamma_negative(x: Array) -> Array:
    sine = _sin_pi(x) / np.pi
    return 1.0 / (sine * sine) - _trigamma_positive(1.0 - x)


def _polygamma(n: int, x: Array) -> Array:
    # Between poles by the cotangent, which keeps its digits where it is small; beside one, powers multiply its error.
    between = (x < 0.0) & (np.abs(x - np.round(x)) > 0.25) & (n <= _MOST_REFLECTED)
    return _branch(between, lambda x: _polygamma_between(n, x), lambda x: _polygamma_by_zeta(n, x), x)


def _polygamma_by_zeta(n: int, x: Array) -> Array:
    # (-1)**(n + 1) n! zeta(n + 1, x); beyond 170 the factorial alone would overflow.
    value = _zeta(np.full_like(x, n + 1.0), x)
    sign = 1.0 if n % 2 else -1.0
    if n <= 170:
        return value * (sign * float(math.factorial(n)))
    return sign * np.copysign(np.exp(np.log(np.abs(value)) + math.lgamma(n + 1)), value)


def _polygamma_between(n: int, x: Array) -> Array:
    # digamma(1 - x) - digamma(x) = pi cot(pi x), differentiated n times.
    sign = -1.0 if n % 2 else 1.0
    return sign * _polygamma_by_zeta(n, 1.0 - x) - _polynomial(_cotangent_slope(n), 1.0 / _tan_pi(x))


@functools.cache
def _cotangent_slope(n: int) -> tuple[float, ...]:
    """The n-th derivative of pi cot(pi x) as a polynomial in the cotangent c, from dc/dx = -pi (1 + c**2)."""
    slope = [0, 1]
    for _ in range(n):
        steps = [k * coefficient for k, coefficient in enumerate(slope)][1:]
        slope = [-(a + b) for a, b in zip([*steps, 0, 0], [0, 0, *steps], strict=True)]
    return tuple(math.pi ** (n + 1) * coefficient for coefficient in reversed(slope))


def _zeta(s: Array, q: Array) -> Array:
    value = _branch(q > 0.0, _zeta_positive, _zeta_negative, s, q)
    # Infinite arguments are nan unless a single term decides, and the pole at s = 1 hides every other special case.
    value = np.where((np.isposinf(q) & (s > 1.0)) | (np.isposinf(s) & (q > 1.0)), np.nan, value)
    return np.where(s == 1.0, np.inf, np.where(s < 1.0, np.nan, value))


def _zeta_positive(s: Array, q: Array) -> Array:
    """Sum ten terms, and the rest by the Euler-Maclaurin formula."""
    end = q + 10.0
    inverse_square = 1.0 / (end * end)
    tail = np.full_like(s, _EULER_MACLAURIN[-1])
    for j in range(len(_EULER_MACLAURIN) - 1, 0, -1):
        tail *= (s + (2.0 * j - 1.0)) * (s + 2.0 * j)
        tail *= inverse_square
        tail += _EULER_MACLAURIN[j - 1]
    power = np.power(end, -s)
    result = np.where(power == 0.0, 0.0, power * (end / (s - 1.0) + 0.5 + s / end * tail))
    for step in range(9, -1, -1):
        result += np.power(q + step, -s)
    return result


def _zeta_negative(s: Array, q: Array) -> Array:
    """Inf at the poles; elsewhere by reflection of the finite part of the sum, for integral s."""
    below, above = q - np.floor(q), np.ceil(q) - q
    pole = q == np.floor(q)
    parity = np.where(np.mod(s, 2.0) == 1.0, -1.0, 1.0)
    one = np.where(pole, 1.0, above)
    # zeta(s, q) = zeta(s, f) + (-1)**s (zeta(s, 1 - f) - zeta(s, 1 - q)), f the fraction of q.
    finite = _zeta_positive(s, one) - _zeta_positive(s, 1.0 - q)
    value = _zeta_positive(s, np.where(pole, 1.0, below)) + parity * finite
    value = np.where((s == np.floor(s)) | np.isnan(q), value + 0.0 * q, np.nan)
    return np.where(pole, np.inf, value)
