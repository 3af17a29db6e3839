"""Distributions that draw again until a sample is accepted: Poisson, gamma, Dirichlet and binomial.

How many numbers an element takes depends on the numbers, and the next element goes on behind them. Compiled loops
(`engine.fill_poisson` and so on, native/rejection.c) follow that element by element. Where nothing is compiled,
together.py and gamma_pairs.py find many elements at a time in the stream, and one_by_one.py serves the rest.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.backend.random import one_by_one, together
from pullback.backend.random.checks import is_floating, require_floating, unsupported
from pullback.backend.random.engine import fill_binomial, fill_gamma, fill_poisson
from pullback.backend.random.gamma_chain import draw_gamma_of_one_shape
from pullback.backend.random.gamma_pairs import draw_gamma_of_shapes
from pullback.backend.random.generator import Generator, chosen
from pullback.backend.random.libm import narrow
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

_FEW = 64  # elements that take less time one by one than the arrays take to set up
_NEVER_TOO_LOW = 9  # shapes from here on can use every normal number: -8.6 is the least that is drawn
_THIRD = float(np.float32(1 / 3))  # a float32 constant in PyTorch


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
            _poisson_each(rates, source, samples)
    return narrow(samples.reshape(input.shape), input.dtype)


def _poisson_each(rates: Array, source: Generator, samples: Array) -> None:
    """Samples of equal rates, or of differing ones that are all 10 or more, together; others one by one."""
    equal = len(rates) > _FEW and bool((rates == rates[0]).all())
    with ReadAhead(source) as ahead:
        if len(rates) > _FEW and rates.min() >= 10 and rates.max() < math.inf:
            parameters = together.poisson_parameters(rates[:1] if equal else rates)
            together.draw_by_pairs(ahead, together.poisson_attempt, parameters, samples)
        elif equal and rates[0] == 0:
            samples[:] = 0
        elif equal and rates[0] < 10:
            together.draw_by_products(ahead, float(rates[0]), samples)
        else:
            samples[:] = [one_by_one.poisson(rate, ahead.uniform) for rate in rates.tolist()]


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
    drawn = np.flatnonzero(alpha)  # a shape of 0 draws nothing
    samples[alpha == 0] = 0
    many = len(drawn) > _FEW and bool((d[drawn] > 0).all())
    with ReadAhead(source) as ahead:
        equal = many and bool((alpha[drawn] == alpha[drawn[0]]).all())
        if equal or (many and bool((alpha[drawn] >= 1).all())):
            samples[drawn] = _gamma_together(ahead, alpha[drawn], exponent[drawn], d[drawn], equal)
        else:
            rows = zip(alpha.tolist(), exponent.tolist(), d.tolist(), strict=True)
            samples[:] = [one_by_one.gamma(*row, ahead) for row in rows]


def _gamma_together(ahead: ReadAhead, alpha: Array, exponent: Array, d: Array, equal: bool) -> Array:
    samples = np.empty(len(alpha))
    begun = 0
    while ahead.source.next_normal is not None and begun < len(samples):
        samples[begun] = one_by_one.gamma(float(alpha[begun]), float(exponent[begun]), float(d[begun]), ahead)
        begun += 1
    alpha, exponent, d, cubes = alpha[begun:], exponent[begun:], d[begun:], samples[begun:]
    bases = np.ones(len(cubes))
    if len(cubes) and equal and alpha[0] < _NEVER_TOO_LOW:
        draw_gamma_of_one_shape(ahead, bool(alpha[0] < 1), float(d[0]), cubes, bases)
    elif len(cubes):
        draw_gamma_of_shapes(ahead, alpha, d, cubes, bases)
    scaled = np.flatnonzero(alpha < 1)
    scales = np.ones(len(cubes))
    powers = map(one_by_one.power, bases[scaled].tolist(), exponent[scaled].tolist())
    scales[scaled] = np.fromiter(powers, np.float64, len(scaled))
    cubes *= scales * d
    return samples


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
            _binomial_each(counts, probs, source, samples)
    return samples.astype(count.dtype).reshape(np.broadcast_shapes(count.shape, prob.shape))


def _binomial_each(n: Array, prob: Array, source: Generator, samples: Array) -> None:
    """Samples of equal parameters together; others one by one.

    What is rounded to float32 in PyTorch is rounded here: the arrays keep their dtype.
    """
    one = prob.dtype.type(1)
    p = np.where(prob > 0.5, one - prob, prob)
    mean, odds = n * p, p / (one - p)
    columns = (n, prob, p, mean, np.log1p(-p), np.sqrt(mean * (one - p)), odds, np.floor((n + one) * p))
    many = len(n) > _FEW and bool(((n > 0) & (prob > 0) & (prob < 1) & (n < 2.0**40)).all())
    equal = many and bool(((n == n[0]) & (prob == prob[0])).all())
    with ReadAhead(source) as ahead:
        if equal and mean[0] >= 10:
            parameters = together.binomial_parameters([column[:1] for column in columns])
            together.draw_by_pairs(ahead, together.binomial_attempt, parameters, samples)
        elif equal:
            together.draw_by_waiting(ahead, float(n[0]), float(columns[4][0]), samples)
        else:
            rows = zip(*[column.tolist() for column in columns], strict=True)
            samples[:] = [one_by_one.binomial(row, ahead.uniform) for row in rows]
            return
    np.subtract(n, samples, out=samples, where=prob > 0.5)
