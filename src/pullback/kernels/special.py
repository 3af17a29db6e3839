"""The common special functions: error functions, the normal distribution, and guarded logarithms.

Errors are an ulp or two over the whole range unless a function says otherwise. The families of the gamma, Bessel and
Airy functions and the orthogonal polynomials have files of their own.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.kernels import special_coefficients as table
from pullback.kernels.special_evaluation import (
    _branch,
    _elementwise,
    _exp_square,
    _natively,
    _polynomial,
    _product_remainder,
    _rational,
    _sin_pi,
    _sum_remainder,
    _through_float64,
)
from pullback.native import by_device, native
from pullback.typing import Array

_SQRT_HALF = math.sqrt(0.5)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_ERF_SLOPE = (*table.ERF_SMALL[:-1], 0.12837916709551257)


@native
def erf(input: Array) -> Array:
    """Compute the error function.

    `input` has any shape, and the result has the same. y = 2 / sqrt(pi) * integral from 0 to input of exp(-t ** 2) dt.
    """
    return _elementwise(_erf_float32 if input.dtype == np.float32 else _erf, input)


@native
def erfc(input: Array) -> Array:
    """Compute 1 - erf(input), accurate where that is tiny.

    Elementwise. y = 2 / sqrt(pi) * the integral of exp(-t ** 2) from x to infinity.

    >>> import pullback
    >>> pullback.erfc(pullback.tensor([0.0, 10.0]))
    tensor([1.0000e+00, 1.4013e-45])
    """
    return _elementwise(_erfc, input)


@by_device
def erfcx(input: Array) -> Array:
    """Compute exp(input**2) * erfc(input)."""
    return _elementwise(_erfcx, input)


@native
def erfinv(input: Array) -> Array:
    """Compute the inverse of erf; nan outside [-1, 1].

    Elementwise: erf(erfinv(x)) = x; -1 and 1 give infinities.

    >>> import pullback
    >>> pullback.erfinv(pullback.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.4769,    inf])
    """
    return _elementwise(_erfinv, input)


@by_device
def ndtr(input: Array) -> Array:
    """Compute the standard normal distribution function.

    Elementwise. y = (1 + erf(x / sqrt(2))) / 2: the share of normal numbers below x.

    >>> import pullback
    >>> pullback.special.ndtr(pullback.tensor([0.0, 2.0]))
    tensor([0.5000, 0.9772])
    """
    return _elementwise(_ndtr, input)


@by_device
def log_ndtr(input: Array) -> Array:
    """Compute the logarithm of the standard normal distribution function.

    Elementwise, accurate where `ndtr` is tiny.

    >>> import pullback
    >>> pullback.special.log_ndtr(pullback.tensor([0.0]))
    tensor([-0.6931])
    """
    return _elementwise(_log_ndtr, input)


@by_device
def ndtri(input: Array) -> Array:
    """Compute the standard normal quantile; nan outside [0, 1].

    Elementwise: ndtr(ndtri(p)) = p.

    >>> import pullback
    >>> pullback.special.ndtri(pullback.tensor([0.5, 1.0]))
    tensor([0., inf])
    """
    return _elementwise(_ndtri, input)


@native
def sinc(input: Array) -> Array:
    """Compute sin(pi x) / (pi x), and 1 at zero.

    Elementwise; the spectrum of a rectangle.

    >>> import pullback
    >>> pullback.sinc(pullback.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    if np.iscomplexobj(input):
        angle = np.pi * input
        return np.where(input == 0, 1.0, np.sin(angle) / np.where(input == 0, 1.0, angle)).astype(input.dtype)
    return _elementwise(_sinc, input)


@native
def sinc_slope(input: Array) -> Array:
    """The derivative of sinc but at zero: pi (a cos(a) - sin(a)) / a^2 with a = pi x.

    Near zero the terms cancel, and the sum over k of (-1)^k 2k / (2k + 1)! a^(2k - 1) takes their place.
    """
    angle = input * np.pi
    square = angle * angle
    tail = 1 / 3991680 - square * (1 / 518918400 - square * (1 / 93405312000 - square * (1 / 22230464256000)))
    near = 1 / 3 - square * (1 / 30 - square * (1 / 840 - square * (1 / 45360 - square * tail)))
    far = (angle * np.cos(angle) - np.sin(angle)) / (input * angle)
    return np.where(np.abs(angle) < 1, -np.pi * angle * near, far)


@native
def erfcx_slope(input: Array, result: Array) -> Array:
    """The derivative of erfcx, given its value; its terms nearly cancel for large arguments."""
    return 2 * input * result - 1.1283791670955126


@native
def xlogy(input: Array, other: Array) -> Array:
    """Compute input * log(other), and 0 where input is 0 unless other is nan."""
    return _natively(_xlogy, input, other)


@native
def xlog1py(input: Array, other: Array) -> Array:
    """Compute input * log1p(other), and 0 where input is 0 unless other is nan."""
    return _natively(_xlog1py, input, other)


@native
def entr(input: Array) -> Array:
    """Compute -input * log(input): 0 at zero, -inf below.

    Elementwise: what one outcome of that probability adds to the entropy.

    >>> import pullback
    >>> pullback.special.entr(pullback.tensor([0.0, 1.0, -1.0]))
    tensor([0., -0., -inf])
    """
    return _natively(_entr, input)


@native
def expit(input: Array) -> Array:
    """Compute 1 / (1 + exp(-input)) without overflow."""
    if np.iscomplexobj(input):
        return 1 / (1 + np.exp(-input))
    return _natively(_expit, input)


@by_device
def logit(input: Array, eps: float | None = None) -> Array:
    """Compute log(input / (1 - input)), first clamping the input to [eps, 1 - eps] if eps is given.

    Elementwise: the inverse of `sigmoid`. Outside [0, 1] the result is nan if no `eps` is given.

    >>> import pullback
    >>> pullback.logit(pullback.tensor([0.5, 0.0]), eps=0.25)
    tensor([ 0.0000, -1.0986])
    """
    if eps is None or eps < 0:
        return _elementwise(_logit, input)
    lower, upper = np.asarray(eps, input.dtype), np.asarray(1 - eps, input.dtype)
    return _elementwise(_logit, np.where(input < lower, lower, np.where(input > upper, upper, input)))


@native
def exp2(input: Array) -> Array:
    """Compute 2**input.

    Elementwise; integers give the default float dtype.

    >>> import pullback
    >>> pullback.exp2(pullback.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """
    return _through_float64(np.exp2, input)


def _erf_float32(x: Array) -> Array:
    # One branch for every x: erf(x) = 1 - exp(-h(x)), and h(x) / x is a polynomial; at 3.95 the result rounds to 1.
    magnitude = np.minimum(np.abs(x), 3.95)
    exponent = _polynomial(table.ERF_FLOAT32, magnitude)
    exponent *= magnitude
    np.negative(exponent, out=exponent)
    np.expm1(exponent, out=exponent)
    return np.copysign(exponent, x, out=exponent)


def _erf(x: Array) -> Array:
    return _branch(np.abs(x) < 0.5, _erf_small, lambda x: np.copysign(1.0 - _erfc_beyond_half(np.abs(x)), x), x)


def _erf_small(x: Array) -> Array:
    return x + x * _erf_slope(x)


def _erf_slope(x: Array) -> Array:
    """Return erf(x) / x - 1 for |x| up to 1."""
    return _polynomial(_ERF_SLOPE, x * x)


def _erfcx_positive(x: Array) -> Array:
    """Return erfcx(|x|)."""
    magnitude = np.abs(x)
    factor, rest = _erfcx_factor(np.minimum(magnitude, 1e100))
    return _branch(
        magnitude < 1e100, _over_one_plus_twice, lambda f, _, x: f * (0.5 / (0.5 + x)), factor, rest, magnitude
    )


def _erfcx_factor(x: Array) -> tuple[Array, Array]:
    """Return (1 + 2 x) erfcx(x) as a sum of two numbers, x >= 0."""
    ratio = (x - 4.0) / (x + 4.0)
    rising = ratio * _polynomial(table.ERFCX[:-1], ratio)
    factor = table.ERFCX[-1] + rising
    return factor, (table.ERFCX[-1] - factor) + rising


def _over_one_plus_twice(value: Array, rest: Array, x: Array) -> Array:
    """Return (value + rest) / (1 + 2 x), rounded once."""
    divisor, divisor_rest = _sum_remainder(2.0 * x, 1.0)
    quotient = value / divisor
    product, product_rest = _product_remainder(quotient, divisor)
    return quotient + (((value - product) - product_rest) + (rest - quotient * divisor_rest)) / divisor


def _erfc(x: Array) -> Array:
    return _branch(np.abs(x) < 0.5, lambda x: 1.0 - _erf_small(x), _erfc_outside, x)


def _erfc_outside(x: Array) -> Array:
    tail = _erfc_beyond_half(np.abs(x))
    return np.where(x < 0, 2.0 - tail, tail)


def _erfc_beyond_half(x: Array) -> Array:
    """Return erfc(x) = exp(-x**2) erfcx(x) for x from 1/2; each factor is a sum of two numbers."""
    x = np.minimum(x, 28.0)
    head = x.astype(np.float32).astype(np.float64)
    power = np.exp(-head * head)
    factor, factor_rest = _erfcx_factor(x)
    product, rest = _product_remainder(power, factor)
    rest += power * factor_rest
    rest += product * np.expm1((head - x) * (head + x))
    return _over_one_plus_twice(product, rest, x)


def _erfcx(x: Array) -> Array:
    return _branch(np.abs(x) < 0.5, lambda x: np.exp(x * x) * (1.0 - _erf_small(x)), _erfcx_outside, x)


def _erfcx_outside(x: Array) -> Array:
    return _branch(x < 0, lambda x: 2.0 * _exp_square(x, 1.0) - _erfcx_positive(x), _erfcx_positive, x)


def _ndtr(x: Array) -> Array:
    return _branch(np.abs(x) < 0.7, lambda x: 0.5 + 0.5 * _erf_small(x * _SQRT_HALF), _ndtr_large, x)


def _normal_tail(x: Array) -> Array:
    """Return ndtr(-|x|)."""
    return 0.5 * _exp_square(x, -0.5) * _erfcx_positive(x * _SQRT_HALF)


def _ndtr_large(x: Array) -> Array:
    tail = _normal_tail(x)
    return np.where(x > 0, 1.0 - tail, tail)


def _log_ndtr(x: Array) -> Array:
    return _branch(x < -1.0, _log_ndtr_negative, _log_ndtr_positive, x)


def _log_ndtr_negative(x: Array) -> Array:
    return np.log(0.5 * _erfcx_positive(x * _SQRT_HALF)) - 0.5 * x * x


def _log_ndtr_positive(x: Array) -> Array:
    return np.log1p(-_ndtr(-x))


def _ndtri(p: Array) -> Array:
    offset = p - 0.5
    return _branch(np.abs(offset) <= 0.425, _ndtri_centre, _ndtri_tail, offset, p)


def _ndtri_centre(offset: Array, p: Array) -> Array:
    value = offset * _rational(table.NDTRI_CENTRE_P, table.NDTRI_CENTRE_Q, offset * offset - 0.180625)
    value -= (0.5 * _erf(value * _SQRT_HALF) - offset) * (2 * _SQRT_HALF_PI) * np.exp(0.5 * value * value)
    return value


def _ndtri_tail(offset: Array, p: Array) -> Array:
    return np.copysign(_normal_quantile_tail(np.where(offset < 0, p, 1.0 - p)), offset)


def _normal_quantile_tail(p: Array) -> Array:
    """Return -ndtri(p) for p up to 0.075; inf at 0, nan below."""
    near = _quantile_estimate(p)
    # A step of Newton's: of five units in the last place one is left. A subnormal tail would not have the digits for it,
    # but its root has, twice as far from it as that.
    ratio = _erfcx_positive(near * _SQRT_HALF)
    root = _exp_square(near, -0.25)
    density = np.where(p > 1e-300, _exp_square(near, -0.5), (root * 2.0**200) * root)
    excess = 0.5 * density * ratio / (p * np.where(p > 1e-300, 1.0, 2.0**200)) - 1.0
    near += np.where(p > 0, excess * ratio * _SQRT_HALF_PI, 0.0)
    return np.where(p == 0, np.inf, near)


def _quantile_estimate(p: Array) -> Array:
    root = np.sqrt(-np.log(p))
    return _branch(root < 5.0, _quantile_near, _quantile_far, root)


def _quantile_near(root: Array) -> Array:
    return _rational(table.NDTRI_TAIL_P, table.NDTRI_TAIL_Q, root - 1.6)


def _quantile_far(root: Array) -> Array:
    return _rational(table.NDTRI_FAR_P, table.NDTRI_FAR_Q, root - 5.0)


def _erfinv(y: Array) -> Array:
    magnitude = np.abs(y)
    near = _branch(magnitude <= 0.85, _erfinv_centre, _erfinv_tail, magnitude)
    # A step of Halley's on erf(v) = y, or on erfc(v) = 1 - y where that has more digits.
    error = _branch(near < 0.5, _erf_excess, lambda v, y: (1.0 - y) - _erfc_beyond_half(v), near, magnitude)
    step = error * (_SQRT_HALF_PI * _SQRT_HALF) * np.exp(near * near)
    near -= np.where(magnitude < 1.0, step / (1.0 + near * step), 0.0)
    return np.copysign(near, y)


def _erf_excess(v: Array, y: Array) -> Array:
    return v * _erf_slope(v) + (v - y)


def _erfinv_centre(y: Array) -> Array:
    return y * (0.5 * _SQRT_HALF * _rational(table.NDTRI_CENTRE_P, table.NDTRI_CENTRE_Q, 0.25 * y * y - 0.180625))


def _erfinv_tail(y: Array) -> Array:
    return np.where(y == 1.0, np.inf, _SQRT_HALF * _quantile_estimate(0.5 * (1.0 - y)))


def _xlogy(x: Array, y: Array) -> Array:
    return np.where((x == 0.0) & ~np.isnan(y), np.zeros_like(x), x * _through_float64(np.log, y))


def _xlog1py(x: Array, y: Array) -> Array:
    return np.where((x == 0.0) & ~np.isnan(y), np.zeros_like(x), x * np.log1p(y))


def _entr(x: Array) -> Array:
    return np.where(x > 0.0, -x * _through_float64(np.log, x), np.where(x == 0.0, np.zeros_like(x), x * np.inf))


def _expit(x: Array) -> Array:
    # exp(-|x|) does not overflow; for negative x it is the numerator too.
    decay = np.exp(-np.abs(x))
    return np.where(x < 0.0, decay, 1.0) / (1.0 + decay)


def _sinc(x: Array) -> Array:
    return np.where(x == 0, 1.0, _sin_pi(x) / (np.pi * x))


def _logit(x: Array) -> Array:
    return _branch(np.abs(x - 0.5) < 0.2, lambda x: 2.0 * np.arctanh(2.0 * x - 1.0), lambda x: np.log(x / (1.0 - x)), x)
