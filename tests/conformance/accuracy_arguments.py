"""Arguments for measuring accuracy: named regions of the numbers of a dtype, from subnormal to the largest, and special ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .accuracy_functions import Function

Array = Any
COUNT = 4000  # arguments of a region
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)


def real_regions(function: Function, dtype: Any) -> dict[str, Array]:
    """The regions of one real argument; the last has no reference where zeros have signs."""
    limits = np.finfo(dtype)
    small, large = float(limits.smallest_subnormal), float(limits.max)
    regions = {
        "ordinary": np.linspace(-10, 10, COUNT) + 1e-4,
        "moderate": both_signs(np.geomspace(1e-3, 1e3, COUNT)),
        "tiny": both_signs(np.exp(np.linspace(np.log(small), np.log(1e-3), COUNT))),
        "huge": both_signs(np.exp(np.linspace(np.log(1e3), np.log(large) - 1e-3, COUNT))),
        "near": np.concatenate([around(point, limits) for point in function.near]),
    }
    return {name: values[values >= function.least].astype(dtype) for name, values in regions.items()}


def both_signs(magnitudes: Array) -> Array:
    return magnitudes * np.where(np.arange(magnitudes.size) % 2, -1.0, 1.0)


def around(point: float, limits: Any) -> Array:
    """The numbers beside a point and those at growing distances from it."""
    step = max(abs(point) * float(limits.eps), float(limits.smallest_subnormal))
    distances = np.concatenate([np.arange(1, 17) * step, np.geomspace(step, 0.1, 200)])
    return np.concatenate([point - distances, point + distances])


def pair_regions(function: Function, dtype: Any) -> dict[str, tuple[Array, Array]]:
    """The regions of two real arguments. The second of a polynomial is its degree."""
    generator = np.random.default_rng(0)
    limits = np.finfo(dtype)
    low, high = np.log(float(limits.smallest_subnormal)), np.log(float(limits.max)) - 1e-3

    def wide(least: float, most: float) -> Array:
        return both_signs(np.exp(generator.uniform(least, most, COUNT)))[generator.permutation(COUNT)]

    if "polynomial" in function.name:
        degrees = generator.integers(0, 30, COUNT).astype(dtype)
        return {
            "ordinary": (generator.uniform(-1.5, 2.5, COUNT).astype(dtype), degrees),
            "inside": (generator.uniform(-1, 1, COUNT).astype(dtype), degrees),
            "moderate": (wide(-7, 4).astype(dtype), degrees),
        }
    first = generator.uniform(-10, 10, COUNT)
    regions = {
        "ordinary": (first, generator.uniform(-10, 10, COUNT)),
        "positive": (generator.uniform(0, 30, COUNT), generator.uniform(0, 30, COUNT)),
        "moderate": (wide(-7, 7), wide(-7, 7)),
        "small power": (abs(wide(-7, 7)), generator.integers(-4, 5, COUNT) / 2),
        "near one": (1 + wide(-20, -1), wide(-5, 10)),
        "wide": (wide(low, high), wide(low, high)),
        "alike": (first, first * (1 + wide(-34, -2))),
        "one tiny": (wide(low, -30), generator.uniform(-3, 3, COUNT)),
        "other tiny": (generator.uniform(-3, 3, COUNT), wide(low, -30)),
    }
    kept = {name: np.minimum(a, b) >= function.least for name, (a, b) in regions.items()}
    with np.errstate(over="ignore"):
        return {name: (a.astype(dtype)[kept[name]], b.astype(dtype)[kept[name]]) for name, (a, b) in regions.items()}


def complex_regions(dtype: Any) -> dict[str, Array]:
    """The regions of one complex argument, none on an axis: there the signs of zeros choose the branch."""
    generator = np.random.default_rng(0)
    real = np.float32 if dtype == np.complex64 else np.float64
    limits = np.finfo(real)

    def parts(least: float, most: float) -> Array:
        return both_signs(np.exp(generator.uniform(least, most, COUNT)))[generator.permutation(COUNT)]

    low, high = np.log(float(limits.tiny)), np.log(float(limits.max)) - 1e-3
    eps = np.log(float(limits.eps))
    regions = {
        "ordinary": (parts(-3, 1.5), parts(-3, 1.5)),
        "moderate": (parts(-7, 5), parts(-7, 5)),
        "tiny": (parts(low, -7), parts(low, -7)),
        "huge": (parts(7, high), parts(7, high)),
        "wide": (parts(low, high), parts(low, high)),
        "near one": (both_signs(1 + parts(eps, -1)), parts(eps, -1)),
        "near the imaginary unit": (parts(eps, -1), both_signs(1 + parts(eps, -1))),
        "near the real axis": (parts(-2, 3), parts(low, eps)),
        "near the imaginary axis": (parts(low, eps), parts(-2, 3)),
    }
    return {name: join(a.astype(real), b.astype(real), dtype) for name, (a, b) in regions.items()}


def join(real: Array, imaginary: Array, dtype: Any) -> Array:
    result = np.empty(real.shape, dtype)
    result.real, result.imag = real, imaginary
    return result


def special_arguments(arity: int, dtype: Any) -> tuple[Array, ...]:
    """Zeros of both signs, infinities, NaN and small whole numbers; in pairs for two arguments or parts."""
    if np.dtype(dtype).kind == "c":
        real = np.float32 if dtype == np.complex64 else np.float64
        a, b = np.array(list(itertools.product(SPECIAL[:7], repeat=2)), real).T
        values = join(a, b, dtype)
        if arity == 1:
            return (values,)
        i, j = np.array(list(itertools.product(range(len(values)), repeat=2))).T
        return values[i], values[j]
    if arity == 1:
        return (np.array(SPECIAL, dtype),)
    return tuple(np.array(list(itertools.product(SPECIAL, repeat=2)), dtype).T)
