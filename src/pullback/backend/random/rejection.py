"""Distributions that draw again until a sample is accepted: Poisson, gamma, Dirichlet and binomial.

How many numbers an element takes depends on the numbers, and the next element goes on behind them. Compiled loops
(`engine.fill_poisson` and so on, native/rejection.c) follow that element by element. Where nothing is compiled, many
elements are found in the stream at a time. See Note [Following].
"""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.backend.libm import narrow, power
from pullback.backend.random.checks import is_floating, require_floating, unsupported
from pullback.backend.random.engine import fill_binomial, fill_gamma, fill_poisson
from pullback.backend.random.gammas import GammaSampler
from pullback.backend.random.generator import Generator, chosen
from pullback.backend.random.poisson_binomial import BinomialSampler, PoissonSampler
from pullback.backend.random.read_ahead import ReadAhead
from pullback.native import by_device
from pullback.typing import Array

_THIRD = float(np.float32(1 / 3))  # a float32 constant in PyTorch


@by_device
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
            _draw_poisson(rates, source, samples)
    return narrow(samples.reshape(input.shape), input.dtype)


def _draw_poisson(rates: Array, source: Generator, samples: Array) -> None:
    samples[...] = 0
    drawn = np.flatnonzero(rates)  # a rate of 0 draws nothing
    found = np.empty(len(drawn))
    with ReadAhead(source) as ahead:
        PoissonSampler(ahead, found, *_once_if_equal(rates[drawn])).draw()
    samples[drawn] = found


def _once_if_equal(*parameters: Array) -> tuple[Array, ...]:
    """The first entries alone, if all are the same."""
    equal = all(bool((each == each[:1]).all()) for each in parameters)
    return tuple(each[:1] for each in parameters) if equal else parameters


@by_device
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
        _draw_gamma(source, shapes, powers, reduced, samples)
    return samples


def _draw_gamma(source: Generator, alpha: Array, exponent: Array, d: Array, samples: Array) -> None:
    samples[...] = np.where(alpha == 0, 0, np.nan)
    drawn = np.flatnonzero((alpha != 0) & (d > 0))  # a shape of 0 draws nothing, and of an impossible one nothing fits
    alpha, exponent, d = alpha[drawn], exponent[drawn], d[drawn]
    scaled = alpha < 1
    found = np.empty(len(drawn))
    with ReadAhead(source) as ahead:
        sampler = GammaSampler(ahead, found, *_once_if_equal(scaled, d))
        sampler.draw()
    scales = np.ones(len(drawn))
    scales[scaled] = power(sampler.bases[:-1][scaled], exponent[scaled])
    samples[drawn] = scales * d * found


@by_device
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
    total: Array = 0
    for _ in range(3):
        whole = steps.shape[-3] - steps.shape[-3] % 16
        total = total + _sum_in_order(steps[..., whole:, :, :])
        groups = steps[..., :whole, :, :].reshape(*steps.shape[:-3], whole // 16, 16, *steps.shape[-2:])
        steps = _sum_in_order(groups)
    return total + _sum_in_order(steps)


def _sum_in_order(steps: Array) -> Array:
    if not steps.shape[-3]:
        return np.zeros((*steps.shape[:-3], *steps.shape[-2:]))
    return np.asarray(np.add.accumulate(steps, -3)[..., -1, :, :])


@by_device
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
            _draw_binomial(counts, probs, source, samples)
    return samples.astype(count.dtype).reshape(np.broadcast_shapes(count.shape, prob.shape))


def _draw_binomial(n: Array, prob: Array, source: Generator, samples: Array) -> None:
    """A probability above a half counts the failures."""
    samples[...] = np.where(np.isnan(n) | np.isnan(prob), np.nan, np.where((n > 0) & (prob >= 1), n, 0))
    drawn = np.flatnonzero((n > 0) & (prob > 0) & (prob < 1))
    n, prob = n[drawn], prob[drawn]
    p = np.where(prob > 0.5, prob.dtype.type(1) - prob, prob)
    found = np.empty(len(drawn))
    with ReadAhead(source) as ahead:
        BinomialSampler(ahead, found, *_once_if_equal(n, p)).draw()
    samples[drawn] = np.where(prob > 0.5, n - found, found)
