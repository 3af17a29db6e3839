"""Rejection samplers, one element at a time: the compiled loops in Python.

For a few elements, and for small rates and means that differ from element to element: there nothing can be said about
where an element's numbers begin before all elements in front of it have taken theirs (see together.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pullback.backend.random.read_ahead import ReadAhead

SQUEEZE = float(np.float32(0.0331))  # a float32 constant in PyTorch


def poisson(rate: float, uniform: Callable[[], float]) -> float:
    """One sample of the Poisson distribution."""
    if rate >= 10:
        return _poisson_by_rejection(rate, uniform)
    if rate == 0:
        return 0
    least, product, count = math.exp(-rate), uniform(), 0
    while product > least:
        product *= uniform()
        count += 1
    return count


def _poisson_by_rejection(rate: float, uniform: Callable[[], float]) -> float:
    """Hörmann's transformed rejection (PTRS, 1993)."""
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        height = log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if height <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def log(value: float) -> float:
    """libm's logarithm, infinite where Python's raises."""
    return math.log(value) if value else -math.inf


def gamma(alpha: float, exponent: float, d: float, ahead: ReadAhead) -> float:
    """One sample by Marsaglia and Tsang's method (2000); a shape below 1 is drawn one higher and scaled down."""
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = power(1 - ahead.uniform(), exponent)
    if not d > 0:  # a negative shape, or NaN: nothing would ever be accepted
        return math.nan
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = ahead.normal()
            y = 1 + c * x
        v = y * y * y
        u = 1 - ahead.uniform()
        xx = x * x
        if u < 1 - SQUEEZE * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return scale * d * v


def power(base: float, exponent: float) -> float:
    """libm's power, infinite where Python's raises."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def binomial(row: tuple[float, ...], uniform: Callable[[], float]) -> float:
    """One sample; a probability above a half counts the failures, whose probability is `p`."""
    n, prob, p, mean, log_failure, deviation, odds, middle = row
    if n != n or prob != prob:
        return math.nan
    if n <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return n
    if mean >= 10:
        found = _binomial_by_rejection(n, p, mean, deviation, odds, middle, uniform)
    else:
        found = _binomial_by_waiting(n, log_failure, uniform)
    return found if prob <= 0.5 else n - found


def _binomial_by_waiting(n: float, log_failure: float, uniform: Callable[[], float]) -> float:
    """Add geometric waiting times until they exceed the number of trials."""
    trials, successes = 0.0, 0
    while True:
        number = uniform()
        trials += math.ceil(math.log(number) / log_failure) if number else math.inf
        if trials > n:
            return successes
        successes += 1


def _binomial_by_rejection(
    trials: float, p: float, mean: float, deviation: float, odds: float, m: float, uniform: Callable[[], float]
) -> float:
    """Hörmann's transformed rejection with squeeze (BTRS, 1993)."""
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = mean + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = float(math.floor((2 * a / us + b) * u + c)) if us else -1.0
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or k > trials:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (odds * (trials - m + 1)))
            + (trials + 1) * math.log((trials - m + 1) / (trials - k + 1))
            + (k + 0.5) * math.log(odds * (trials - k + 1) / (k + 1))
            + stirling_tail(m)
            + stirling_tail(trials - m)
            - stirling_tail(k)
            - stirling_tail(trials - k)
        )
        if log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def stirling_tail(k: float) -> float:
    """What Stirling's formula lacks of log k!."""
    if k <= 9:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
