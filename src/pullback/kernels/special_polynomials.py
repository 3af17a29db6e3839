"""Orthogonal polynomials: Chebyshev of four kinds, plain and shifted to [0, 1], Hermite, Laguerre and Legendre.

The degree n is truncated to an integer; a negative one, nan and infinity give 0. Low degrees follow the recurrence,
high degrees of Chebyshev's polynomials the trigonometric or hyperbolic formula.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback.kernels.special_evaluation import _branch, _elementwise, _multiply_exactly
from pullback.native import by_device
from pullback.typing import Array

# Rounding errors of the recurrence grow inside [-1, 1]; outside all its terms pull the same way.
_RECURRENCE_INSIDE = 6.0
_RECURRENCE_OUTSIDE = 64.0
_HIGHEST_HERMITE = 512.0


@by_device
def chebyshev_polynomial_t(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the first kind of degree n."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_t, _plain, x, n), input, n)


@by_device
def chebyshev_polynomial_u(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the second kind of degree n."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_u, _plain, x, n), input, n)


@by_device
def chebyshev_polynomial_v(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the third kind of degree n."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_v, _plain, x, n), input, n)


@by_device
def chebyshev_polynomial_w(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the fourth kind of degree n."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_w, _plain, x, n), input, n)


@by_device
def shifted_chebyshev_polynomial_t(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the first kind of degree n at 2 * input - 1."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_t, _shifted, x, n), input, n)


@by_device
def shifted_chebyshev_polynomial_u(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the second kind of degree n at 2 * input - 1."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_u, _shifted, x, n), input, n)


@by_device
def shifted_chebyshev_polynomial_v(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the third kind of degree n at 2 * input - 1."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_v, _shifted, x, n), input, n)


@by_device
def shifted_chebyshev_polynomial_w(input: Array, n: Array) -> Array:
    """Compute the Chebyshev polynomial of the fourth kind of degree n at 2 * input - 1."""
    return _elementwise(lambda x, n: _chebyshev(_chebyshev_w, _shifted, x, n), input, n)


@by_device
def hermite_polynomial_h(input: Array, n: Array) -> Array:
    """Compute the physicists' Hermite polynomial of degree n."""
    return _elementwise(_hermite_h, input, n)


@by_device
def hermite_polynomial_he(input: Array, n: Array) -> Array:
    """Compute the probabilists' Hermite polynomial of degree n."""
    return _elementwise(_hermite_he, input, n)


@by_device
def laguerre_polynomial_l(input: Array, n: Array) -> Array:
    """Compute the Laguerre polynomial of degree n."""
    return _elementwise(_laguerre, input, n)


@by_device
def legendre_polynomial_p(input: Array, n: Array) -> Array:
    """Compute the Legendre polynomial of degree n."""
    return _elementwise(_legendre, input, n)


def _degree(n: Array) -> Array:
    """Truncate the degree; -1 means: not a degree."""
    return np.where(np.isfinite(n), np.maximum(np.trunc(n), -1.0), -1.0)


def _recur(x: Array, n: Array, first: Array, step: Callable[[int, Array, Array], Array]) -> Array:
    """Follow p(k + 1) = step(k, p(k), p(k - 1)) from p(0) = 1 and p(1) = first to each element's degree."""
    highest = int(np.max(n, initial=0.0))
    uniform = bool(np.all(n == highest))
    previous, current = np.ones_like(x), first
    result = np.where(n < 0.0, 0.0, np.where(n == 0.0, previous, current))
    for k in range(1, highest):
        previous, current = current, step(k, current, previous)
        if not uniform:
            result = np.where(n == k + 1, current, result)
    return current if uniform and highest > 1 else result


def _plain(x: Array) -> tuple[Array, Array]:
    """Return x, and its distance 1 - |x| from the nearer end of [-1, 1]."""
    return x, 1.0 - np.abs(x)


def _shifted(x: Array) -> tuple[Array, Array]:
    """Return y = 2x - 1, and 1 - |y| without cancellation."""
    return 2.0 * x - 1.0, 2.0 * np.where(x < 0.5, x, 1.0 - x)


def _chebyshev(
    kind: Callable[[Array, Array, Array], Array], place: Callable[[Array], tuple[Array, Array]], x: Array, n: Array
) -> Array:
    y, distance = place(x)
    return kind(y, distance, _degree(n))


def _is_high(distance: Array, n: Array) -> Array:
    return n > np.where(distance >= 0.0, _RECURRENCE_INSIDE, _RECURRENCE_OUTSIDE)


def _chebyshev_t(y: Array, distance: Array, n: Array) -> Array:
    return _branch(_is_high(distance, n), _closed_t, lambda y, _, n: _double_recurrence(y, n, y), y, distance, n)


def _chebyshev_u(y: Array, distance: Array, n: Array) -> Array:
    return _branch(_is_high(distance, n), _closed_u, lambda y, _, n: _double_recurrence(y, n, 2.0 * y), y, distance, n)


def _chebyshev_v(y: Array, distance: Array, n: Array) -> Array:
    return _branch(
        _is_high(distance, n), _closed_v, lambda y, _, n: _double_recurrence(y, n, 2.0 * y - 1.0), y, distance, n
    )


def _chebyshev_w(y: Array, distance: Array, n: Array) -> Array:
    return _branch(
        _is_high(distance, n), _closed_w, lambda y, _, n: _double_recurrence(y, n, 2.0 * y + 1.0), y, distance, n
    )


def _double_recurrence(y: Array, n: Array, first: Array) -> Array:
    """Follow the recurrence all four kinds share; they differ in degree one."""
    twice = 2.0 * y
    return _recur(y, n, first, lambda _, current, previous: twice * current - previous)


def _closed_t(y: Array, distance: Array, n: Array) -> Array:
    return _branch(np.abs(y) < 0.5, lambda y, _, n: _turned_cosine(np.arcsin(y), n), _closed_t_outside, y, distance, n)


def _closed_t_outside(y: Array, distance: Array, n: Array) -> Array:
    return _parity(y, n) * _branch(distance >= 0.0, _cosine, _hyperbolic_cosine, distance, n)


def _closed_u(y: Array, distance: Array, n: Array) -> Array:
    return _branch(np.abs(y) < 0.5, lambda y, _, n: _central_u(y, n), _closed_u_outside, y, distance, n)


def _closed_u_outside(y: Array, distance: Array, n: Array) -> Array:
    return _parity(y, n) * _sine_ratio(distance, n + 1.0, 1.0)


def _central_u(y: Array, n: Array) -> Array:
    # sin(m (pi/2 - a)) is cos(m (pi/2 - a)) a quarter turn earlier.
    angle = np.arcsin(y)
    turned: Array = _turned(np.mod(n, 4.0), (n + 1.0) * angle) / np.cos(angle)
    return turned


def _turned_cosine(angle: Array, n: Array) -> Array:
    """Return cos(n (pi/2 - angle)); near the middle of [-1, 1] the angle from there has more digits."""
    return _turned(np.mod(n, 4.0), n * angle)


def _turned(quarters: Array, angle: Array) -> Array:
    """Return cos(quarters * pi/2 - angle)."""
    value = np.where(np.mod(quarters, 2.0) == 1.0, np.sin(angle), np.cos(angle))
    return np.where(quarters >= 2.0, -value, value)


def _closed_v(y: Array, distance: Array, n: Array) -> Array:
    # V at -y is W at y, but for the sign.
    return _parity(y, n) * _branch(y < 0.0, _half_sine_ratio, _half_cosine_ratio, distance, n)


def _closed_w(y: Array, distance: Array, n: Array) -> Array:
    return _parity(y, n) * _branch(y < 0.0, _half_cosine_ratio, _half_sine_ratio, distance, n)


def _half_sine_ratio(distance: Array, n: Array) -> Array:
    return _sine_ratio(distance, n + 0.5, 0.5)


def _half_cosine_ratio(distance: Array, n: Array) -> Array:
    half = np.full_like(n, 0.5)
    numerator = _branch(distance >= 0.0, _cosine, _hyperbolic_cosine, distance, n + 0.5)
    return numerator / _branch(distance >= 0.0, _cosine, _hyperbolic_cosine, distance, half)


def _parity(y: Array, n: Array) -> Array:
    """Return the sign that reflection to |y| costs: -1 for odd degrees at negative y."""
    return np.where((y < 0.0) & (n > 0.0) & (np.mod(n, 2.0) == 1.0), -1.0, 1.0)


def _angle(distance: Array) -> Array:
    """Return arccos(1 - distance)."""
    return 2.0 * np.arcsin(np.sqrt(0.5 * distance))


def _hyperbolic_angle(distance: Array) -> Array:
    """Return arccosh(1 - distance) for a negative distance."""
    return 2.0 * np.arcsinh(np.sqrt(-0.5 * distance))


def _cosine(distance: Array, multiple: Array) -> Array:
    result: Array = np.cos(multiple * _angle(distance))
    return result


def _hyperbolic_cosine(distance: Array, multiple: Array) -> Array:
    result: Array = np.cosh(multiple * _hyperbolic_angle(distance))
    return result


def _sine_ratio(distance: Array, multiple: Array, unit: float) -> Array:
    """Return sin(multiple * angle) / sin(unit * angle), or of the hyperbolic sines outside [-1, 1]."""
    ratio = _branch(
        distance >= 0.0,
        lambda distance, multiple: np.sin(multiple * _angle(distance)) / np.sin(unit * _angle(distance)),
        lambda distance, multiple: _hyperbolic_sine_ratio(distance, multiple, unit),
        distance,
        multiple,
    )
    return np.where(distance == 0.0, multiple / unit, ratio)


def _hyperbolic_sine_ratio(distance: Array, multiple: Array, unit: float) -> Array:
    angle = _hyperbolic_angle(distance)
    result: Array = np.sinh(multiple * angle) / np.sinh(unit * angle)
    return result


def _hermite_h(x: Array, n: Array) -> Array:
    return _hermite(2.0 * x, 2.0, _degree(n))


def _hermite_he(x: Array, n: Array) -> Array:
    return _hermite(x, 1.0, _degree(n))


def _hermite(first: Array, unit: float, degree: Array) -> Array:
    """Follow p(k + 1) = first p(k) - unit k p(k - 1)."""
    bounded = np.minimum(degree, _HIGHEST_HERMITE)
    value = _recur(first, bounded, first.copy(), lambda k, current, previous: first * current - (unit * k) * previous)
    wide = _recur_exactly(first, bounded, lambda k: -unit * k)
    return np.where(degree > _HIGHEST_HERMITE, np.nan, np.where(np.isfinite(wide), wide, value))


def _recur_exactly(first: Array, n: Array, weight: Callable[[int], float]) -> Array:
    """Follow p(k + 1) = first p(k) + weight(k) p(k - 1) with twice the digits; nan where that overflows."""
    zeros = np.zeros_like(first)
    before, current = (np.ones_like(first), zeros), (first, zeros)
    result = np.where(n < 0.0, 0.0, np.where(n == 0.0, 1.0, first))
    for k in range(1, int(np.max(n, initial=0.0))):
        a, a_rest = _multiply_exactly(*current, first)
        b, b_rest = _multiply_exactly(*before, np.full_like(first, weight(k)))
        total = a + b
        part = total - a
        rest = ((a - (total - part)) + (b - part)) + (a_rest + b_rest)
        before, current = current, (total, rest)
        result = np.where(n == k + 1, total + rest, result)
    return result


def _laguerre(x: Array, n: Array) -> Array:
    # The recurrence for differences of neighbours: (k + 1) d(k + 1) = k d(k) - x p(k). Far out they overflow too early.
    far = np.abs(x) > 1e100

    def step(k: int, current: Array, previous: Array) -> Array:
        near: Array = current + (k * (current - previous) - x * current) / (k + 1.0)
        return np.where(far, (((2.0 * k + 1.0) - x) * current - k * previous) / (k + 1.0), near)

    return _recur(x, _degree(n), 1.0 - x, step)


def _legendre(x: Array, n: Array) -> Array:
    # For x >= 0, (k + 1) d(k + 1) = k d(k) + (2k + 1) (x - 1) p(k), d the difference of neighbours; not beside the zero of
    # odd degrees, which is one of the plain recurrence too. Negative x by symmetry.
    magnitude = np.abs(x)
    degree = _degree(n)
    central, below = magnitude < 0.5, magnitude - 1.0

    def step(k: int, current: Array, previous: Array) -> Array:
        outer = current + (k * (current - previous) + (2.0 * k + 1.0) * below * current) / (k + 1.0)
        return np.where(central, ((2.0 * k + 1.0) * magnitude * current - k * previous) / (k + 1.0), outer)

    return np.where(degree == 1.0, x, _parity(x, degree) * _recur(x, degree, magnitude, step))
