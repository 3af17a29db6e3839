"""Airy's function Ai; below -3 the error is a few ulp of its envelope, elsewhere of the result."""

from __future__ import annotations

import math

import numpy as np

from pullback.kernels import special_coefficients as table
from pullback.kernels.special_evaluation import _branch, _elementwise, _polynomial, _product_remainder, _rational
from pullback.native import by_device
from pullback.typing import Array

_HALF_INVERSE_SQRT_PI = 0.5 / math.sqrt(math.pi)
_INVERSE_SQRT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)


@by_device
def airy_ai(input: Array) -> Array:
    """Compute Airy's function Ai; nan at both infinities."""
    return _elementwise(_ai, input)


def _ai(x: Array) -> Array:
    return _branch(np.abs(x + 0.5) <= 2.5, _ai_middle, _ai_outside, x)


def _ai_middle(x: Array) -> Array:
    return _branch(x < 0.0, _ai_negative, _ai_positive, x)


def _ai_outside(x: Array) -> Array:
    return _branch(x > 0.0, _ai_decaying, _ai_oscillating, x)


def _ai_negative(x: Array) -> Array:
    (first, first_rest), (second, second_rest) = table.AI_ZERO_1, table.AI_ZERO_2
    zeros = ((x - first) - first_rest) * ((x - second) - second_rest)
    return zeros * _polynomial(table.AI_NEGATIVE, x)


def _ai_positive(x: Array) -> Array:
    return _polynomial(table.AI_POSITIVE, x - 2.0)


def _ai_decaying(x: Array) -> Array:
    bounded = np.minimum(x, 1000.0)
    head, tail = _two_thirds_power(bounded)
    decay = np.exp(-head)
    decay -= decay * tail
    scale = _HALF_INVERSE_SQRT_PI / np.sqrt(np.sqrt(bounded))
    result: Array = scale * _rational(table.AI_DECAY_P, table.AI_DECAY_Q, 1.0 / head) * decay + (x - x)
    return result


def _ai_oscillating(x: Array) -> Array:
    """Return (P cos(zeta - pi/4) + Q sin(zeta - pi/4)) / (sqrt(pi) |x|**(1/4))."""
    head, tail = _two_thirds_power(-x)
    cosine, sine = np.cos(head), np.sin(head)
    tail_cosine, tail_sine = (np.cos(tail), np.sin(tail)) if np.any(np.abs(tail) > 1e-8) else (1.0, tail)
    cosine, sine = cosine * tail_cosine - sine * tail_sine, sine * tail_cosine + cosine * tail_sine
    inverse = 1.0 / head
    square = inverse * inverse
    even = _rational(table.AI_P_P, table.AI_P_Q, square)
    odd = inverse * _rational(table.AI_Q_P, table.AI_Q_Q, square)
    scale = _INVERSE_SQRT_TWO_PI / np.sqrt(np.sqrt(-x))
    result: Array = scale * ((even - odd) * cosine + (even + odd) * sine)
    return result


def _two_thirds_power(x: Array) -> tuple[Array, Array]:
    """Return zeta = 2/3 x**1.5 as a sum of two numbers: its absolute error becomes that of an exponent or an angle."""
    root = np.sqrt(x)
    square, square_rest = _product_remainder(root, root)
    root_rest = 0.5 * ((x - square) - square_rest) / root
    power, power_rest = _product_remainder(x, root)
    power_rest += x * root_rest
    head = 2.0 * power / 3.0
    triple, triple_rest = _product_remainder(head, np.full_like(head, 3.0))
    return head, (((2.0 * power - triple) - triple_rest) + 2.0 * power_rest) / 3.0
