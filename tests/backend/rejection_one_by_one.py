"""Rejection sampling as PyTorch does it, one element after the other: what samples that are found together must equal."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend import random
from pullback.backend.random import Generator
from pullback.typing import Array

F64 = np.dtype(np.float64)
SQUEEZE = float(np.float32(0.0331))
THIRD = float(np.float32(1 / 3))


class OneByOne:
    """Draws from a generator one number at a time."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator

    def uniform(self) -> float:
        return float(random.uniform((), F64, generator=self.generator))

    def normal(self) -> float:
        return float(random.normal((), F64, generator=self.generator))

    def poisson(self, rates: Array) -> Array:
        return np.array([self._poisson(rate) for rate in rates.tolist()], rates.dtype)

    def _poisson(self, rate: float) -> float:
        if rate == 0:
            return 0
        if rate >= 10:
            return self._large_poisson(rate)
        least, product, count = math.exp(-rate), self.uniform(), 0
        while product > least:
            product *= self.uniform()
            count += 1
        return count

    def _large_poisson(self, rate: float) -> float:
        b = 0.931 + 2.53 * math.sqrt(rate)
        a = -0.059 + 0.02483 * b
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        while True:
            u, v = self.uniform() - 0.5, self.uniform()
            us = 0.5 - abs(u)
            k = math.floor((2 * a / us + b) * u + rate + 0.43)
            if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
                return k
            if k < 0 or (us < 0.013 and v > us):
                continue
            height = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
            if height <= -rate + k * math.log(rate) - math.lgamma(k + 1):
                return k

    def gamma(self, shapes: Array) -> Array:
        return np.array([self._gamma(shape) for shape in shapes], shapes.dtype)

    def _gamma(self, shape: np.floating) -> float:
        one, scale = shape.dtype.type(1), 1.0
        if shape == 0:
            return float(np.finfo(shape.dtype).tiny)
        if shape < 1:
            scale = (1 - self.uniform()) ** float(one / shape)
            shape = shape + one
        d = float(shape - shape.dtype.type(THIRD))
        while True:
            y = 0.0
            while y <= 0:
                x = self.normal()
                y = 1 + 1 / math.sqrt(9 * d) * x
            v, u = y * y * y, 1 - self.uniform()
            if u < 1 - SQUEEZE * x**2 * x**2 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
                return max(scale * d * v, float(np.finfo(shape.dtype).tiny))

    def binomial(self, counts: Array, probs: Array) -> Array:
        return np.array([self._binomial(n, p) for n, p in zip(counts, probs, strict=True)], counts.dtype)

    def _binomial(self, n: np.floating, prob: np.floating) -> float:
        if n <= 0 or prob <= 0 or prob >= 1:
            return float(n) if n > 0 and prob >= 1 else 0.0
        p = prob if prob <= 0.5 else prob.dtype.type(1) - prob
        found = self._waiting(float(n), float(np.log1p(-p))) if n * p < 10 else self._large_binomial(n, p)
        return found if prob <= 0.5 else float(n) - found

    def _waiting(self, n: float, log_failure: float) -> float:
        trials, successes = 0.0, -1
        while trials <= n:
            trials += math.ceil(math.log(self.uniform()) / log_failure)
            successes += 1
        return successes

    def _large_binomial(self, count: np.floating, p: np.floating) -> float:
        one = p.dtype.type(1)
        n, mean, odds = float(count), count * p, float(p / (one - p))
        m, deviation = float(np.floor((count + one) * p)), float(np.sqrt(mean * (one - p)))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * float(p)
        while True:
            u, v = self.uniform() - 0.5, self.uniform()
            us = 0.5 - abs(u)
            k = float(math.floor((2 * a / us + b) * u + float(mean) + 0.5))
            if us >= 0.07 and v <= 0.92 - 4.2 / b:
                return k
            if not 0 <= k <= n:
                continue
            bound = (
                (m + 0.5) * math.log((m + 1) / (odds * (n - m + 1)))
                + (n + 1) * math.log((n - m + 1) / (n - k + 1))
                + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
                + tail(m)
                + tail(n - m)
                - tail(k)
                - tail(n - k)
            )
            if math.log(v * (2.83 + 5.1 / b) * deviation / (a / (us * us) + b)) <= bound:
                return k


def tail(k: float) -> float:
    """What Stirling's formula lacks of log k!."""
    if k <= 9:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    return (1 / 12 - (1 / 360 - 1 / 1260 / (k + 1) ** 2) / (k + 1) ** 2) / (k + 1)
