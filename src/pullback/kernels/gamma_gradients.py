"""How samples of the gamma and Dirichlet distributions move with their parameters.

A sample x of a distribution with cdf C(x; a) moves by dx/da = -(dC/da) / (dC/dx) at constant C (implicit
differentiation). dC/da has no closed form: near the ends of the range it is summed as a series, for large parameters
it is a saddle point expansion, and in between a rational function, with PyTorch's borders and coefficients, fitted to
PyTorch's values, so that both give the same gradients (the approximations are good to about four digits).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend import random as draw
from pullback.kernels.special_evaluation import _branch, _elementwise
from pullback.kernels.special_gamma import digamma
from pullback.native import by_device
from pullback.typing import Array

# log(gradient) = p / q for a gamma sample, with powers of log(x / alpha) down and of log(alpha) across.
_GAMMA_NUMERATOR = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
)
_GAMMA_DENOMINATOR = (
    (1.0, 0.32668115, 0.10406089, 0.0014179084),
    (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
)
# gradient / approximation = p / q for a beta sample: a table for each power of log(x), with powers of
# log(alpha / x) down and of log(total * x / alpha) across.
_BETA_NUMERATOR = (
    (
        (1.003668233, -0.01061107488, -0.06578883340, 0.01201642863),
        (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
        (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
    ),
    (
        (0.2219503850, -0.3187676331, 0.01799915743, 0.01074823814),
        (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
        (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
    ),
    (
        (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
        (0.02911413504, 0.01400243777, -0.002721828457, 0.0007510411810),
        (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
    ),
)
_BETA_DENOMINATOR = (
    (
        (1.0, -0.02924021934, -0.04438342661, 0.007285809825),
        (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
        (-0.03301322327, 0.004845219414, 0.002314805830, -0.0002307248149),
    ),
    (
        (0.5925320577, -0.1757678135, 0.01505928619, 0.0005645152730),
        (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
        (-0.007258481865, 0.001096195486, 0.0003934994223, -4.127019250e-05),
    ),
    (
        (0.06469649321, -0.02367014370, 0.002902096474, -5.896963079e-05),
        (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
        (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
    ),
)


@by_device
def standard_gamma(input: Array, generator: Any = None) -> Array:
    """Draw samples of gamma distributions with rate 1 and the concentrations in `input`."""
    return draw.standard_gamma(np.asarray(input), generator)


@by_device
def standard_gamma_grad(input: Array, output: Array) -> Array:
    """Compute the derivative of gamma samples `output` with respect to their concentrations `input`."""
    return _elementwise(_gamma_gradient, np.asarray(input), np.asarray(output))


def sample_dirichlet(input: Array, generator: Any = None) -> Array:
    """Draw samples of Dirichlet distributions with the concentrations in the last dimension of `input`."""
    return draw.dirichlet(input, generator)


@by_device
def dirichlet_grad(input: Array, alpha: Array, total: Array) -> Array:
    """Compute the derivative of beta samples `input` with respect to `alpha`, over 1 - input; beta is total - alpha.

    Moving one component of a Dirichlet sample scales the others by the same ratio: hence the division.
    """
    return _elementwise(_beta_gradient, np.asarray(input), np.asarray(alpha), np.asarray(total))


def _gamma_gradient(alpha: Array, x: Array) -> Array:
    return _branch(x < 0.8, _gamma_series, _gamma_beyond_series, alpha, x)


def _gamma_beyond_series(alpha: Array, x: Array) -> Array:
    return _branch(alpha > 8.0, _gamma_expansion, _gamma_rational, alpha, x)


def _gamma_series(alpha: Array, x: Array) -> Array:
    # C(x) = x**alpha / gamma(alpha) * sum over k of (-x)**k / (k! (alpha + k)), and its derivative term by term.
    term = np.ones_like(x)
    values, slopes = 1.0 / alpha, 1.0 / alpha**2
    for k in range(1, 6):
        term = term * (-x / k)
        values = values + term / (alpha + k)
        slopes = slopes + term / (alpha + k) ** 2
    power = x**alpha
    slope = (np.log(x) - digamma(alpha)) * (power * values) - power * slopes
    return _zero_for_nan(-slope / (x ** (alpha - 1.0) * np.exp(-x)))


def _gamma_expansion(alpha: Array, x: Array) -> Array:
    is_central = (0.9 * alpha <= x) & (x <= 1.1 * alpha)
    return _branch(is_central, _gamma_centre, _gamma_tail, alpha, x)


def _gamma_centre(alpha: Array, x: Array) -> Array:
    # The expansion's own limit where the general form divides zero by zero.
    first = 1.0 + 24.0 * alpha * (1.0 + 12.0 * alpha)
    second = 1440.0 * alpha**2 + 6.0 * x * (53.0 - 120.0 * x) - 65.0 * x**2 / alpha + alpha * (107.0 + 3600.0 * x)
    return first * second / (1244160.0 * alpha**4)


def _gamma_tail(alpha: Array, x: Array) -> Array:
    scale = np.sqrt(8.0 * alpha)
    distance = alpha - x
    ratio = np.log(x / alpha)
    deviance = np.power(x - alpha - alpha * ratio, -1.5)
    bracket = ratio * (scale / distance - np.copysign(deviance, distance))
    bracket -= np.sqrt(2.0 / alpha) * (alpha + x) / distance**2
    return -_stirling(alpha) * x * bracket / scale


def _stirling(value: Array) -> Array:
    """The first terms of Stirling's series for the gamma function."""
    return 1.0 + 1.0 / (12.0 * value) + 1.0 / (288.0 * value**2)


def _gamma_rational(alpha: Array, x: Array) -> Array:
    u, v = np.log(x / alpha), np.log(alpha)
    return np.exp(_double_polynomial(_GAMMA_NUMERATOR, u, v) / _double_polynomial(_GAMMA_DENOMINATOR, u, v))


def _double_polynomial(rows: tuple[tuple[float, ...], ...], u: Array, v: Array) -> Array:
    """Sum coefficients[i][j] u**i v**j by Horner's rule."""
    result = np.zeros_like(u)
    for row in reversed(rows):
        inner = np.zeros_like(v)
        for coefficient in reversed(row):
            inner = inner * v + coefficient
        result = result * u + inner
    return result


def _triple_polynomial(tables: tuple[tuple[tuple[float, ...], ...], ...], u: Array, v: Array, w: Array) -> Array:
    result = np.zeros_like(u)
    for rows in reversed(tables):
        result = result * u + _double_polynomial(rows, v, w)
    return result


def _beta_gradient(x: Array, alpha: Array, total: Array) -> Array:
    beta = total - alpha
    spread = total * x * (1.0 - x)
    lower = (x <= 0.5) & (spread < 2.5)
    return _branch(lower, _beta_lower, _beta_not_lower, x, alpha, beta, total, spread)


def _beta_not_lower(x: Array, alpha: Array, beta: Array, total: Array, spread: Array) -> Array:
    upper = (x >= 0.5) & (spread < 0.75)
    return _branch(upper, _beta_upper, _beta_inside, x, alpha, beta, total)


def _beta_inside(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    return _branch((alpha > 6.0) & (beta > 6.0), _beta_expansion, _beta_rational, x, alpha, beta, total)


def _beta_lower(x: Array, alpha: Array, beta: Array, total: Array, spread: Array) -> Array:
    # The incomplete beta function as a series at zero, differentiated with respect to its exponent there.
    factor = digamma(alpha) - digamma(alpha + beta) - np.log(x)
    term = np.ones_like(x)
    series = (factor + 1.0 / alpha) / alpha
    for k in range(1, 11):
        term = term * ((k - beta) * x / k)
        series = series + term / (alpha + k) * (factor + 1.0 / (alpha + k))
    return _zero_for_nan(x * np.power(1.0 - x, -beta) * series)


def _beta_upper(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    # The same seen from the other end: the exponent that is differentiated is the one at the far end.
    y = 1.0 - x
    factor = digamma(alpha + beta) - digamma(alpha)
    term, product, slope = np.ones_like(y), np.ones_like(y), np.zeros_like(y)
    series = factor / beta
    for k in range(1, 9):
        term = term * (-y / k)
        slope = slope * (alpha - k) + product
        product = product * (alpha - k)
        series = series + term / (beta + k) * (slope + factor * product)
    return _zero_for_nan(np.power(x, 1.0 - alpha) * series)


def _beta_expansion(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    mean = alpha / total
    deviation = np.sqrt(alpha * beta / (total + 1.0)) / total
    is_central = (mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation)
    return _branch(is_central, _beta_centre, _beta_tail, x, alpha, beta, total)


def _beta_centre(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    # A polynomial in alpha, lowest power first.
    powers = (
        47.0 * x * beta**4,
        (43.0 + 20.0 * (16.0 + 27.0 * beta) * x) * beta**3,
        3.0 * (59.0 + 180.0 * beta - 90.0 * x) * beta**2,
        (453.0 + 1620.0 * beta * (1.0 - x) - 455.0 * x) * beta,
        8.0 * (1.0 - x) * (135.0 * beta - 11.0),
    )
    polynomial = np.zeros_like(x)
    for coefficient in reversed(powers):
        polynomial = polynomial * alpha + coefficient
    scale = (1.0 + 12.0 * alpha) * (1.0 + 12.0 * beta) / total**2
    return scale / (12960.0 * alpha**3 * beta**2 * (1.0 + 12.0 * total)) * polynomial / (1.0 - x)


def _beta_tail(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    distance = beta * x + alpha * (x - 1.0)
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    numerator = 2.0 * alpha**2 * (x - 1.0) + alpha * beta * (x - 1.0) - x * beta**2
    bracket = numerator / (np.sqrt(2.0 * alpha / beta) * total**1.5 * distance**2)
    deviance = beta * np.log(beta / (total * (1.0 - x))) + alpha * np.log(alpha / (total * x))
    steep = np.sqrt(8.0 * alpha * beta / total) / distance - np.copysign(deviance**-1.5, x - alpha / total)
    bracket += 0.5 * np.log(alpha / (total * x)) * steep
    return -stirling * x / np.sqrt(2.0 * alpha * beta / total) * bracket


def _beta_rational(x: Array, alpha: Array, beta: Array, total: Array) -> Array:
    u = np.log(x)
    v = np.log(alpha) - u
    w = np.log(total) - v
    approximation = x * (digamma(total) - digamma(alpha)) / beta
    ratio = _triple_polynomial(_BETA_NUMERATOR, u, v, w) / _triple_polynomial(_BETA_DENOMINATOR, u, v, w)
    return ratio * approximation


def _zero_for_nan(value: Array) -> Array:
    """A sample that has run into the end of the range does not move."""
    return np.where(np.isnan(value), 0.0, value)
