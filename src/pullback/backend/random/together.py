"""Rejection samplers, many elements at a time, from the numbers that one at a time would take.

# Note [Settling]
Where an element's numbers begin depends on how many the elements before it took. Attempts of equal size are laid over the
stream, all of them are tried at once on the guess which element each one serves, and the outcomes say which elements they
really serve; what was guessed wrong is tried again, until guess and outcome agree. Everything before the first wrong guess
is right, so this ends; since an attempt rarely succeeds for one element and fails for its neighbour, it ends soon, and at
once if all parameters are equal.

Logarithms that decide are libm's: NumPy's differ in the last bit, which large parameters would make visible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pullback.backend.random import one_by_one
from pullback.backend.random.libm import through_libm
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

_LONGEST, _SHORTEST = 4096, 128  # attempts in a window; short where guesses turn out wrong
_SMALL_TAILS = np.array([one_by_one.stirling_tail(k) for k in range(10)])

Attempt = Callable[[Array, Array, Array], tuple[Array, Array]]
"""Two uniform numbers and the parameters as rows, one attempt each: the values, and which are accepted."""


def draw_by_pairs(ahead: ReadAhead, attempt: Attempt, parameters: Array, samples: Array) -> None:
    """Fill `samples` by attempts that take two numbers each. See Note [Settling].

    `parameters` has a column for each sample, or one for all of them.
    """
    size, filled = (_LONGEST if parameters.shape[1] == 1 else 256), 0
    while filled < len(samples):
        size = min(size, 2 * (len(samples) - filled) + 16)
        numbers = ahead.window(2 * size)
        values, accepted, rounds = _settle(attempt, numbers[::2] - 0.5, numbers[1::2], parameters, filled)
        found = np.flatnonzero(accepted)[: len(samples) - filled]
        samples[filled : filled + len(found)] = values[found]
        filled += len(found)
        ahead.position += 2 * (int(found[-1]) + 1 if filled == len(samples) else size)
        size = min(2 * size, _LONGEST) if rounds < 6 else max(size // 2, _SHORTEST)


def _settle(attempt: Attempt, u: Array, v: Array, parameters: Array, filled: int) -> tuple[Array, Array, int]:
    if parameters.shape[1] == 1:
        return *attempt(u, v, parameters), 1
    last = parameters.shape[1] - 1
    element = np.minimum(filled + np.arange(len(u)), last)
    values, accepted = attempt(u, v, parameters[:, element])
    rounds = 1
    while True:
        served = np.minimum(filled + np.cumsum(accepted) - accepted, last)
        wrong = np.flatnonzero(served != element)
        if not len(wrong):
            return values, accepted, rounds
        element = served
        values[wrong], accepted[wrong] = attempt(u[wrong], v[wrong], parameters[:, element[wrong]])
        rounds += 1


def poisson_parameters(rates: Array) -> Array:
    """The rows that `poisson_attempt` reads, for rates of 10 and more."""
    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    log_inverse_alpha = through_libm(math.log, 1.1239 + 1.1328 / (b - 3.4))
    return np.array([rates, through_libm(math.log, rates), b, a, log_inverse_alpha, 0.9277 - 3.6224 / (b - 2)])


def poisson_attempt(u: Array, v: Array, parameters: Array) -> tuple[Array, Array]:
    """Hörmann's transformed rejection (PTRS, 1993)."""
    rate, log_rate, b, a, log_inverse_alpha, v_r = parameters
    us = 0.5 - np.abs(u)
    k = np.where(us, np.floor((2 * a / us + b) * u + rate + 0.43), -1)
    accepted = (us >= 0.07) & (v <= v_r)
    unsure = np.flatnonzero(~accepted & (k >= 0) & ((us >= 0.013) | (v <= us)))
    rate, log_rate, b, a, log_inverse_alpha, _ = _columns(parameters, unsure)
    us, counts = us[unsure], k[unsure]
    height = _log(v[unsure]) + log_inverse_alpha - _log(a / (us * us) + b)
    accepted[unsure] = height <= -rate + counts * log_rate - through_libm(math.lgamma, counts + 1)
    return k, accepted


def _columns(parameters: Array, chosen: Array) -> Array:
    return parameters if parameters.shape[1] == 1 else parameters[:, chosen]


def _log(values: Array) -> Array:
    return through_libm(one_by_one.log, values)


def binomial_parameters(columns: Sequence[Array]) -> Array:
    """The rows that `binomial_attempt` reads, for means of 10 and more."""
    n, _, p, mean, _, deviation, odds, m = (column.astype(np.float64) for column in columns)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    at_middle = (m + 0.5) * _log((m + 1) / (odds * (n - m + 1)))
    alpha = (2.83 + 5.1 / b) * deviation
    tails = (stirling_tails(m), stirling_tails(n - m))
    return np.array([n, mean + 0.5, odds, m, b, a, 0.92 - 4.2 / b, alpha, at_middle, *tails])


def binomial_attempt(u: Array, v: Array, parameters: Array) -> tuple[Array, Array]:
    """Hörmann's transformed rejection with squeeze (BTRS, 1993)."""
    n, c, _, _, b, a, v_r, *_ = parameters
    us = 0.5 - np.abs(u)
    k = np.where(us, np.floor((2 * a / us + b) * u + c), -1)
    accepted = (us >= 0.07) & (v <= v_r)
    unsure = np.flatnonzero(~accepted & (k >= 0) & (k <= n))
    n, _, odds, m, b, a, _, alpha, at_middle, tail, opposite_tail = _columns(parameters, unsure)
    us, counts = us[unsure], k[unsure]
    bound = (
        at_middle
        + (n + 1) * _log((n - m + 1) / (n - counts + 1))
        + (counts + 0.5) * _log(odds * (n - counts + 1) / (counts + 1))
        + tail
        + opposite_tail
        - stirling_tails(counts)
        - stirling_tails(n - counts)
    )
    accepted[unsure] = _log(v[unsure] * alpha / (a / (us * us) + b)) <= bound
    return k, accepted


def stirling_tails(k: Array) -> Array:
    """What Stirling's formula lacks of log k!, of whole numbers."""
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, _SMALL_TAILS[np.clip(k, 0, 9).astype(np.intp)], series)


def draw_by_products(ahead: ReadAhead, rate: float, samples: Array) -> None:
    """Fill with Poisson samples of one rate below 10: how many factors a product needs to fall to exp(-rate).

    Where a sample that begins at any number would end is found from sums of logarithms.
    """

    def end_of(numbers: Array) -> Array:
        sums = np.concatenate([[0.0], np.cumsum(-np.log(np.maximum(numbers, 1e-300)))])
        aims = sums[:-1] + rate
        ends = np.searchsorted(sums, aims)
        near = np.minimum(np.abs(sums[np.minimum(ends, len(numbers))] - aims), np.abs(sums[ends - 1] - aims)) <= 1e-9
        for start in np.flatnonzero(near):  # one in 10**8: the sums are not exact
            below = np.flatnonzero(np.multiply.accumulate(numbers[start:]) <= math.exp(-rate))
            ends[start] = start + below[0] + 1 if len(below) else len(sums)
        return ends

    _draw_chained(ahead, end_of, samples)


def draw_by_waiting(ahead: ReadAhead, trials: float, log_failure: float, samples: Array) -> None:
    """Fill with binomial samples of one small mean: how many geometric waiting times fit into the trials."""

    def end_of(numbers: Array) -> Array:
        waits = np.minimum(np.ceil(np.log(numbers) / log_failure), trials + 1).astype(np.int64)
        sums = np.concatenate([[0], np.cumsum(waits)])
        return np.searchsorted(sums, sums[:-1] + math.floor(trials), side="right")

    _draw_chained(ahead, end_of, samples)


def _draw_chained(ahead: ReadAhead, end_of: Callable[[Array], Array], samples: Array) -> None:
    """Fill `samples` with the numbers taken less one, where `end_of` gives the end for each possible beginning."""
    filled = 0
    while filled < len(samples):
        numbers = ahead.window(min(_LONGEST, 16 * (len(samples) - filled) + 64))
        beginnings = _follow(np.append(end_of(numbers), len(numbers) + 1), len(samples) - filled + 1, len(numbers))
        taken = np.diff(beginnings)
        samples[filled : filled + len(taken)] = taken - 1
        filled += len(taken)
        ahead.position += int(beginnings[-1])


def _follow(jump: Array, most: int, limit: int) -> Array:
    """The places that jumps from place 0 visit, up to `most` of them and up to `limit`, by doubling the jumps."""
    jump = np.append(np.minimum(jump, limit + 1), limit + 1)
    visited = np.zeros(1, np.intp)
    while len(visited) < most and visited[-1] <= limit:
        visited = np.concatenate([visited, jump[visited]])
        jump = jump[jump]
    return visited[: min(most, int(np.searchsorted(visited, limit, side="right")))]
