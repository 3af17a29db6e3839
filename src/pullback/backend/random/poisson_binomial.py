"""Poisson and binomial samples, many elements at a time. See Note [Following].

Of a large mean they are found by transformed rejection, in attempts that take two numbers each. A small one is counted:
numbers are taken until their product, or the sum of the waiting times they stand for, passes a bound. Since minus the
logarithms of the numbers are the gaps of a Poisson process, the sums of these are the clock by which counting proceeds.

Decisions are made by NumPy's logarithms, and close ones again by libm's, which PyTorch calls.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pullback.backend.libm import through_libm
from pullback.backend.random.following import UNKNOWN, Attempts, Rows, Sampler, windows
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

_LARGE = 10  # means from here on are drawn by rejection
_CLOSE = 1e-9  # sums of logarithms that differ by less are not trusted

_Function: TypeAlias = Callable[[Array], Array]


class CountSampler(Sampler):
    """What Poisson and binomial samples have in common.

    `means`, `attempts` (how many are expected, for a large mean) and the columns of `parameters` are those of the elements.
    """

    def __init__(self, ahead: ReadAhead, samples: Array, means: Array, attempts: Array, parameters: Array) -> None:
        self._large = means >= _LARGE
        self._paired = bool(self._large.all())  # then a state is a pair of numbers
        self._parameters = parameters
        taken = np.where(self._large, 2 * attempts, means + 1)
        # By the clock, counting varies by how far the last number goes beyond the bound.
        pace = 0 if self._paired else 2 * attempts
        variance = np.where(self._large, 4 * attempts * (attempts - 1) + pace, 1 + 0.1 * means)
        super().__init__(ahead, samples, taken, variance)
        self.rows = 192 if self._paired else 128

    def look(self, count: int) -> tuple[int, Array]:
        numbers = self._numbers = self.ahead.window(count + count % 2)
        step = 2 if self._paired else 1
        self._u, self._v = numbers[:-1:step] - 0.5, np.ascontiguousarray(numbers[1::step])
        self._us = 0.5 - np.abs(self._u)
        self._high = self._us >= 0.07
        if self._paired:
            return 0, 2 * np.arange(len(self._u))
        self._logs = np.log(np.maximum(numbers, 1e-300))
        self._clock = np.append(0, np.cumsum(-self._logs))
        return 0, self._clock[: len(self._u)]

    def leave(self, state: int, finished: bool) -> None:
        self.ahead.position += 2 * state if self._paired else state

    def attempt(self, rows: Rows) -> Attempts:
        large = self._large[rows.element]
        if large.all():
            return self._attempt_pairs(rows)
        if not large.any():
            return self._count(rows)
        of_large = self._attempt_pairs(Rows(rows.element[large], rows.low[large], rows.width))
        of_small = self._count(Rows(rows.element[~large], rows.low[~large], rows.width))
        shape = (len(rows.low), rows.width)
        attempts = Attempts(np.empty(shape, np.intp), np.empty(shape, np.bool_))
        for whole, upper, lower in zip(attempts, of_large, of_small, strict=True):
            whole[large], whole[~large] = upper, lower
        return attempts

    def keep(self, element: Array, state: Array, advance: Array) -> None:
        self.samples[element] = advance - 1  # the last number of a count is beyond the bound
        parameters = np.zeros_like(element) if self.equal else element
        large = np.flatnonzero(self._large[parameters])
        self.samples[element[large]] = self._propose(state[large], self._parameters[:, parameters[large]])

    def _attempt_pairs(self, rows: Rows) -> Attempts:
        """Attempts of a transformed rejection, most of which are accepted at once."""
        accepted = rows.of(self._high) & (rows.of(self._v) <= self._parameters[0, rows.element][:, None])
        row, column = np.nonzero(~accepted)
        state, parameters = rows.low[row] + column, self._parameters[:, rows.element[row]]
        value = self._propose(state, parameters)
        us, v = self._us[state], self._v[state]
        unsure = np.flatnonzero(self._is_possible(us, v, value, parameters))
        certain = self._decide(us[unsure], v[unsure], value[unsure], parameters[:, unsure])
        accepted[row[unsure], column[unsure]] = certain
        return Attempts(np.full(accepted.shape, 1 if self._paired else 2), accepted)

    def _propose(self, state: Array, parameters: Array) -> Array:
        """The values of attempts."""
        _, b, a, centre, offset, *_ = parameters
        u, us = self._u[state], self._us[state]
        return np.where(us, np.floor((2 * a / us + b) * u + centre + offset), -1)

    def _decide(self, us: Array, v: Array, value: Array, parameters: Array) -> Array:
        surplus, error = self._surplus(us, v, value, parameters, np.log, log_factorial)
        close = np.flatnonzero(np.abs(surplus) <= error)
        if len(close):
            exact = self._with_logs(parameters[:, close], _libm_log)
            surplus[close], _ = self._surplus(us[close], v[close], value[close], exact, _libm_log, _libm_log_factorial)
        return surplus >= 0

    @abstractmethod
    def _with_logs(self, parameters: Array, log: _Function) -> Array:
        """Parameters whose logarithms are taken by this function."""

    @abstractmethod
    def _is_possible(self, us: Array, v: Array, value: Array, parameters: Array) -> Array:
        """Which attempts may be accepted."""

    @abstractmethod
    def _surplus(
        self, us: Array, v: Array, value: Array, parameters: Array, log: _Function, log_factorial: _Function
    ) -> tuple[Array, Array]:
        """By how much the logarithm of the density exceeds that of an attempt's height, and how wrong that may be."""

    @abstractmethod
    def _count(self, rows: Rows) -> Attempts:
        """Small elements, which are always done, from the numbers that begin at each place."""


class PoissonSampler(CountSampler):
    """Poisson samples; large ones by Hörmann's transformed rejection (PTRS, 1993)."""

    def __init__(self, ahead: ReadAhead, samples: Array, rates: Array) -> None:
        b = 0.931 + 2.53 * np.sqrt(rates)
        a = -0.059 + 0.02483 * b
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        parameters = np.array([0.9277 - 3.6224 / (b - 2), b, a, rates, np.full_like(b, 0.43), inverse_alpha])
        super().__init__(ahead, samples, rates, inverse_alpha, self._with_logs(parameters, np.log))

    def _with_logs(self, parameters: Array, log: _Function) -> Array:
        return np.vstack([parameters[:6], log(parameters[3]), log(parameters[5])])

    def _is_possible(self, us: Array, v: Array, value: Array, parameters: Array) -> Array:
        return (value >= 0) & ((us >= 0.013) | (v <= us))

    def _surplus(
        self, us: Array, v: Array, value: Array, parameters: Array, log: _Function, log_factorial: _Function
    ) -> tuple[Array, Array]:
        _, b, a, rate, _, _, log_rate, log_inverse_alpha = parameters
        height = log(v) + log_inverse_alpha - log(a / (us * us) + b)
        growth = value * log_rate
        return -rate + growth - log_factorial(value) - height, 1e-10 + 1e-12 * growth

    def _count(self, rows: Rows) -> Attempts:
        """Take numbers until their product has fallen to exp(-rate), by the sums of their logarithms."""
        aim = rows.of(self._clock) + self._parameters[3, rows.element][:, None]
        end = np.searchsorted(self._clock, aim)
        advance = end - (rows.low[:, None] + np.arange(rows.width))
        advance[end > len(self._numbers)] = UNKNOWN
        return Attempts(advance, np.ones(advance.shape, np.bool_))

    def revise(self, rows: Rows, attempts: Attempts, visited: Array) -> bool:
        """Find out by the products themselves where a sum comes close to the bound, once in 10**8 samples."""
        if self._paired:
            return False
        row, column = np.divmod(visited, rows.width)
        start, rate = rows.low[row] + column, self._parameters[3, rows.element[row]]
        end = np.minimum(start + attempts.advance[row, column], len(self._numbers))
        aim = self._clock[start] + rate
        close = (np.abs(self._clock[end] - aim) <= _CLOSE) | (end > start + 1) & (aim - self._clock[end - 1] <= _CLOSE)
        close = np.flatnonzero(close & ~self._large[rows.element[row]])
        if not len(close):
            return False
        row, column = row[close], column[close]
        exact = self._end_of_product(start[close], rate[close]) - start[close]
        changed = bool((exact != attempts.advance[row, column]).any())
        attempts.advance[row, column] = exact
        return changed

    def _end_of_product(self, start: Array, rate: Array) -> Array:
        numbers = windows(np.append(self._numbers, np.ones(self.slack)), self.slack)[start]
        above = np.multiply.accumulate(numbers, 1) > through_libm(math.exp, -rate)[:, None]
        return start + np.where(above[:, -1], UNKNOWN, above.sum(1) + 1)


class BinomialSampler(CountSampler):
    """Binomial samples of probabilities up to a half; large ones by Hörmann's rejection with squeeze (BTRS, 1993)."""

    def __init__(self, ahead: ReadAhead, samples: Array, trials: Array, p: Array) -> None:
        """What PyTorch rounds to the dtype of `trials` and `p` is rounded here: the arrays keep it."""
        one = p.dtype.type(1)
        mean, odds = trials * p, p / (one - p)
        columns = (trials, p, mean, np.log1p(-p), np.sqrt(mean * (one - p)), odds, np.floor((trials + one) * p))
        n, p, mean, log_failure, deviation, odds, m = (column.astype(np.float64) for column in columns)
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        alpha = (2.83 + 5.1 / b) * deviation
        tails = stirling_tails(m), stirling_tails(n - m)
        parameters = np.array(
            [0.92 - 4.2 / b, b, a, mean + 0.5, np.zeros_like(b), n, log_failure, odds, m, alpha, *tails]
        )
        self._means = mean
        super().__init__(ahead, samples, mean, 1.13 + 2.04 / b, self._with_logs(parameters, np.log))

    def _with_logs(self, parameters: Array, log: _Function) -> Array:
        n, odds, m = parameters[5], parameters[7], parameters[8]
        return np.vstack([parameters[:12], (m + 0.5) * log((m + 1) / (odds * (n - m + 1)))])

    def _is_possible(self, us: Array, v: Array, value: Array, parameters: Array) -> Array:
        return (value >= 0) & (value <= parameters[5])

    def _surplus(
        self, us: Array, v: Array, value: Array, parameters: Array, log: _Function, log_factorial: _Function
    ) -> tuple[Array, Array]:
        _, b, a, _, _, n, _, odds, m, alpha, tail, opposite_tail, at_middle = parameters
        bound = (
            at_middle
            + (n + 1) * log((n - m + 1) / (n - value + 1))
            + (value + 0.5) * log(odds * (n - value + 1) / (value + 1))
            + tail
            + opposite_tail
            - stirling_tails(value)
            - stirling_tails(n - value)
        )
        return bound - log(v * alpha / (a / (us * us) + b)), 1e-12 * (n + 10)

    def _count(self, rows: Rows) -> Attempts:
        """Take geometric waiting times until they exceed the trials: their sums, measured in these, are searched by row."""
        most = float(self._means[rows.element].max())
        extra = int((most + 5 * math.sqrt(most) + 4) * self.slack / CountSampler.slack)
        n, log_failure = (self._parameters[k, rows.element][:, None] for k in (5, 6))
        whole = np.floor(n) + 1
        waits = rows.of(np.append(self._logs, np.zeros(extra)), extra) / log_failure
        waits = np.minimum(np.ceil(waits, out=waits), whole, out=waits)
        waits /= whole
        length = rows.width + extra + 1
        offset = length * np.arange(len(waits))[:, None]
        sums = np.empty((len(waits), length))
        sums[:, :1] = offset
        np.cumsum(waits, 1, out=sums[:, 1:])
        sums[:, 1:] += offset
        end = np.searchsorted(sums.ravel(), sums[:, : rows.width] + (whole - 0.5) / whole) - offset
        advance = end - np.arange(rows.width)
        advance[end >= length] = UNKNOWN
        return Attempts(advance, np.ones(advance.shape, np.bool_))


def _libm_log(values: Array) -> Array:
    return through_libm(lambda value: math.log(value) if value else -math.inf, values)


def _libm_log_factorial(values: Array) -> Array:
    return through_libm(math.lgamma, values + 1)


def log_factorial(k: Array) -> Array:
    """log k! of whole numbers, but for a few units of the tenth decimal place."""
    return (k + 0.5) * np.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi) + stirling_tails(k)


def _stirling_tail(k: float) -> float:
    return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))


_SMALL_TAILS = np.array([_stirling_tail(k) for k in range(10)])


def stirling_tails(k: Array) -> Array:
    """What Stirling's formula lacks of log k!, of whole numbers."""
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    if not (k <= 9).any():
        return series
    return np.where(k <= 9, _SMALL_TAILS[np.clip(k, 0, 9).astype(np.intp)], series)
