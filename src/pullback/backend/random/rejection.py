"""Distributions that draw again until a sample is accepted: Poisson, gamma, Dirichlet and binomial.

How many numbers an element takes depends on the numbers, so elements follow each other in a loop: a compiled one
(`engine.fill_poisson` and so on, native/rejection.c), or where nothing is compiled, one in Python that takes 1 to 2
microseconds for each. That is the price of drawing what PyTorch draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.backend.random.checks import is_floating, require_floating, unsupported
from pullback.backend.random.engine import fill_binomial, fill_gamma, fill_poisson
from pullback.backend.random.generator import Generator, chosen
from pullback.backend.random.libm import narrow
from pullback.typing import Array

_AHEAD = 1024  # numbers read ahead
_THIRD, _SQUEEZE = float(np.float32(1 / 3)), float(np.float32(0.0331))  # float32 constants in PyTorch


class _Stream:
    """Numbers of a generator one at a time, read ahead in bulk; what was not used is given back."""

    def __init__(self, source: Generator) -> None:
        self._source = source
        self._start = source.pack_state()
        self._numbers: list[float] = []
        self._position = 0

    def uniform(self) -> float:
        if self._position == len(self._numbers):
            self._start = self._source.pack_state()
            self._numbers = self._source.uniform64(_AHEAD).tolist()
            self._position = 0
        number = self._numbers[self._position]
        self._position += 1
        return number

    def normal(self) -> float:
        kept = self._source.next_normal
        if kept is not None:
            self._source.next_normal = None
            return kept
        angle, height = 2 * math.pi * self.uniform(), self.uniform()
        radius = math.sqrt(-2 * math.log1p(-height))
        self._source.next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def give_back(self) -> None:
        kept = self._source.next_normal
        self._source.unpack_state(self._start)
        self._source.random64(self._position)
        self._source.next_normal = kept


@contextmanager
def _stream(generator: Generator | None) -> Iterator[_Stream]:
    source = chosen(generator)
    with source.lock:
        stream = _Stream(source)
        try:
            yield stream
        finally:
            stream.give_back()


def poisson(input: Array, generator: Generator | None = None) -> Array:
    """Draw from the Poisson distribution with the rates `input`."""
    require_floating(input.size, input.dtype, "poisson_cpu")
    if not (input >= 0).all():
        raise RuntimeError(f"invalid Poisson rate, expected rate to be non-negative, but the least is {input.min()}")
    rates = np.ascontiguousarray(input, np.float64).ravel()
    samples = np.empty(rates.shape)
    source = chosen(generator)
    with source.lock, source.noting_reads():
        if not fill_poisson(source.memory, rates, samples):
            with _stream(source) as stream:
                samples[:] = [_poisson(rate, stream.uniform) for rate in rates.tolist()]
    return narrow(samples.reshape(input.shape), input.dtype)


def _poisson(rate: float, uniform: Callable[[], float]) -> float:
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
        height = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if height <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf


def standard_gamma(input: Array, generator: Generator | None = None) -> Array:
    """Draw from the gamma distribution with the shapes `input` and scale 1."""
    if input.size and input.dtype.name not in ("float32", "float64"):
        raise unsupported("gamma_cpu", input.dtype)
    samples = _gamma_each(input.ravel(), chosen(generator))
    return np.asarray(np.maximum(samples.astype(input.dtype), np.finfo(input.dtype).tiny)).reshape(input.shape)


def _gamma_each(alpha: Array, source: Generator) -> Array:
    """Samples in float64, from shapes whose own arithmetic is done in their dtype."""
    boosted = alpha < 1
    exponent = np.divide(1, alpha, out=np.ones_like(alpha), where=boosted & (alpha != 0))
    d = np.where(boosted, alpha + alpha.dtype.type(1), alpha) - alpha.dtype.type(_THIRD)
    shapes, powers, reduced = (values.astype(np.float64) for values in (alpha, exponent, d))
    samples = np.empty(alpha.shape)
    with source.lock, source.noting_reads():
        left = fill_gamma(source.memory, shapes, powers, reduced, samples, source.next_normal)
        if left is not False:
            source.next_normal = left
            return samples
        with _stream(source) as stream:
            parameters = zip(shapes.tolist(), powers.tolist(), reduced.tolist(), strict=True)
            samples[:] = [_gamma(shape, power, d, stream) for shape, power, d in parameters]
    return samples


def _gamma(alpha: float, exponent: float, d: float, stream: _Stream) -> float:
    """Marsaglia and Tsang's method (2000); a shape below 1 is drawn one higher and scaled down."""
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = _power(1 - stream.uniform(), exponent)
    if not d > 0:  # a negative shape, or NaN: nothing would ever be accepted
        return math.nan
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = stream.normal()
            y = 1 + c * x
        v = y * y * y
        u = 1 - stream.uniform()
        xx = x * x
        if u < 1 - _SQUEEZE * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return scale * d * v


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def dirichlet(input: Array, generator: Generator | None = None) -> Array:
    """Draw from the Dirichlet distribution whose concentrations lie along the last dimension."""
    if input.size and input.dtype.name not in ("float32", "float64"):
        raise unsupported("dirichlet", input.dtype)
    gamma = _gamma_each(input.astype(np.float64).ravel(), chosen(generator))
    gamma = np.maximum(gamma, np.finfo(np.float64).tiny).reshape(input.shape or (1,))
    shares = (gamma / _sum_of_rows(gamma)).astype(input.dtype).reshape(input.shape)
    below_one = np.nextafter(input.dtype.type(1), input.dtype.type(0))
    return np.asarray(np.clip(shares, np.finfo(input.dtype).tiny, below_one))


def _sum_of_rows(values: Array) -> Array:
    """Sum along the last dimension in the order of PyTorch's vector loop: four lanes, four sums each in turn."""
    leading, size = values.shape[:-1], values.shape[-1]
    if size < 4:
        return np.asarray(values.sum(-1, keepdims=True))
    vectors = values[..., : size - size % 4].reshape(*leading, size // 4, 4)
    steps = size // 16
    sums = _sum_in_cascade(vectors[..., : steps * 4, :].reshape(*leading, steps, 4, 4))
    lanes = sums[..., 0, :]
    for k in range(steps * 4, size // 4):
        lanes = lanes + vectors[..., k, :]
    for j in range(1, 4):
        lanes = lanes + sums[..., j, :]
    total = np.zeros(leading)
    for element in range(size - size % 4, size):
        total = total + values[..., element]
    for lane in range(4):
        total = total + lanes[..., lane]
    return total[..., None]


def _sum_in_cascade(steps: Array) -> Array:
    """Sum along the third dimension from the end: 16 at a time, 16 of these at a time, and so on for three levels."""
    levels = [np.zeros((*steps.shape[:-3], *steps.shape[-2:])) for _ in range(4)]
    whole = steps.shape[-3] - steps.shape[-3] % 16
    for end in range(16, whole + 1, 16):
        levels[0] = _sum_in_order(steps[..., end - 16 : end, :, :])
        for level in range(1, 4):
            levels[level] = levels[level] + levels[level - 1]
            levels[level - 1] = np.zeros_like(levels[level])
            if end % 16 ** (level + 1):
                break
    levels[0] = _sum_in_order(steps[..., whole:, :, :])
    return levels[0] + levels[1] + levels[2] + levels[3]


def _sum_in_order(steps: Array) -> Array:
    if not steps.shape[-3]:
        return np.zeros((*steps.shape[:-3], *steps.shape[-2:]))
    return np.asarray(np.add.accumulate(steps, -3)[..., -1, :, :])


def binomial(count: Array, prob: Array, generator: Generator | None = None) -> Array:
    """Draw how many of `count` trials of probability `prob` succeed."""
    if not is_floating(count.dtype) or not is_floating(prob.dtype):
        name, wrong = ("count", count) if not is_floating(count.dtype) else ("prob", prob)
        raise ValueError(
            f"binomial only supports floating-point dtypes for {name}, got: {scalar_type_name(wrong.dtype)}"
        )
    if count.dtype != prob.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_type_name(prob.dtype)} but expected {scalar_type_name(count.dtype)}: "
            "count and prob must have one dtype"
        )
    if count.size and count.dtype.name not in ("float32", "float64"):
        raise unsupported("binomial_cpu", count.dtype)
    counts, probs = (np.ascontiguousarray(each).ravel() for each in np.broadcast_arrays(count, prob))
    samples = np.empty(counts.shape)
    source = chosen(generator)
    with source.lock, source.noting_reads():
        if not fill_binomial(source.memory, counts, probs, samples):
            with _stream(source) as stream:
                samples[:] = _binomials(counts, probs, stream.uniform)
    return samples.astype(count.dtype).reshape(np.broadcast_shapes(count.shape, prob.shape))


def _binomials(n: Array, prob: Array, uniform: Callable[[], float]) -> list[float]:
    """Samples one after the other. What is rounded to float32 in PyTorch is rounded here: the arrays keep their dtype."""
    one = prob.dtype.type(1)
    p = np.where(prob > 0.5, one - prob, prob)
    mean, odds = n * p, p / (one - p)
    columns = (n, prob, p, mean, np.log1p(-p), np.sqrt(mean * (one - p)), odds, np.floor((n + one) * p))
    rows = zip(*[column.tolist() for column in columns], strict=True)
    return [_binomial(row, uniform) for row in rows]


def _binomial(row: tuple[float, ...], uniform: Callable[[], float]) -> float:
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
        height = _log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1) / (odds * (trials - m + 1)))
            + (trials + 1) * math.log((trials - m + 1) / (trials - k + 1))
            + (k + 0.5) * math.log(odds * (trials - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(trials - m)
            - _stirling_tail(k)
            - _stirling_tail(trials - k)
        )
        if height <= bound:
            return k


def _stirling_tail(k: float) -> float:
    """What Stirling's formula lacks of log k!."""
    if k <= 9:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
