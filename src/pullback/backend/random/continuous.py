"""The continuous distributions: uniform, normal, exponential, Cauchy and log-normal.

Each has two faces as in PyTorch: `name(shape, dtype, ...)` makes an array, `name_(input, ...)` fills one in memory
order. Numbers are drawn in float64 and rounded, except that float32 and narrower uniforms use 24 bits.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pullback.backend.random import box_muller, libm
from pullback.backend.random.checks import (
    require_continuous,
    require_floating,
    require_positive,
    require_uniform_bounds,
)
from pullback.backend.random.generator import Generator, chosen
from pullback.backend.random.memory_order import fill, real_view
from pullback.typing import Array, DType, Shape

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

MaybeGenerator: TypeAlias = Generator | None


def uniform(
    shape: Shape, dtype: DType, low: float = 0.0, high: float = 1.0, generator: MaybeGenerator = None
) -> Array:
    """Draw from [low, high); for a complex dtype both parts are drawn so.

    >>> uniform((2,), np.dtype("float32"), generator=Generator().manual_seed(0))
    array([0.49625659, 0.7682218 ], dtype=float32)
    """
    return uniform_(np.empty(shape, dtype), low, high, generator)


def uniform_(input: Array, low: float = 0.0, high: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from [low, high)."""
    if input.dtype.kind == "c":
        uniform_(real_view(input), low, high, generator)
        return input
    require_uniform_bounds(input.dtype, low, high)
    computed = _FLOAT64 if input.dtype == _FLOAT64 else _FLOAT32
    from_, to = float(computed.type(low)), float(computed.type(high))
    source = chosen(generator)
    with source.lock:
        values = source.uniform64(input.size) if computed == _FLOAT64 else source.uniform32(input.size)
    if (low, high) != (0.0, 1.0):
        values = libm.multiply_add(values, float(computed.type(to - from_)), from_)
    values = libm.narrow(values, input.dtype)
    if input.dtype != computed or (low, high) != (0.0, 1.0):
        values[values == input.dtype.type(to)] = input.dtype.type(from_)  # rounding up must not reach the open end
    return fill(input, values)


def normal(
    shape: Shape,
    dtype: DType,
    mean: float | complex | Array = 0.0,
    std: float | Array = 1.0,
    generator: MaybeGenerator = None,
) -> Array:
    """Draw from the normal distribution; `mean` and `std` are numbers, or arrays that broadcast to `shape`.

    A complex number has parts of variance std**2 / 2.

    >>> normal((3,), np.dtype("float32"), generator=Generator().manual_seed(0))
    array([ 1.5409961, -0.2934289, -2.1787894], dtype=float32)
    """
    values = np.empty(shape, dtype)
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if (std < 0).any():
            raise RuntimeError(f"normal expects all elements of std >= 0.0, but the least is {std.min()}")
        normal_(values, 0.0, 1.0, generator)
        values *= std.astype(values.real.dtype, copy=False)
    elif isinstance(mean, np.ndarray):
        normal_(values, 0.0, std, generator)
    else:
        return normal_(values, mean, std, generator)
    values += np.asarray(mean).astype(dtype)
    return values


def normal_(
    input: Array, mean: float | complex = 0.0, std: float = 1.0, generator: MaybeGenerator = None
) -> Array:
    """Fill `input` from the normal distribution."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if input.dtype.kind == "c":
        normal_(real_view(input), mean, std / math.sqrt(2), generator)
        return input
    if isinstance(mean, complex):
        raise TypeError(f"normal_(): argument 'mean' must be float for a real tensor, not {mean}")
    require_floating(input, "normal_kernel_cpu")
    source = chosen(generator)
    with source.lock:
        if input.size < 16 or not input.flags.c_contiguous:
            values = libm.multiply_add(normal_pairs(source, input.size, input.dtype), std, mean)
        elif input.dtype == _FLOAT64:
            values = libm.multiply_add(_normal_many(source, input.size, _FLOAT64, redraw_all=True), std, mean)
        else:
            values = _normal_many(source, input.size, _FLOAT32, redraw_all=input.dtype == _FLOAT32)
            values = libm.multiply_add(values, float(np.float32(std)), float(np.float32(mean)))
    return fill(input, libm.narrow(values, input.dtype))


def normal_pairs(source: Generator, count: int, dtype: DType) -> Array:
    """Draw standard normal float64 numbers in pairs; the half of a pair that is left over waits in the generator."""
    kept = source.next_normal
    if not count:
        return np.empty(0)
    pairs = (count + 1) // 2 if kept is None else count // 2
    numbers = source.uniform64(2 * pairs)
    angle, radius = 2 * math.pi * numbers[::2], np.sqrt(-2 * libm.log1p(-numbers[1::2], dtype))
    values = np.empty((pairs, 2))
    np.multiply(radius, np.cos(angle), out=values[:, 0])
    np.multiply(radius, np.sin(angle), out=values[:, 1])
    stream = values.ravel() if kept is None else np.concatenate(([kept], values.ravel()))
    source.next_normal = float(stream[count]) if len(stream) > count else None
    return stream[:count]


def _normal_many(source: Generator, count: int, dtype: DType, redraw_all: bool) -> Array:
    """Draw 16 or more standard normal numbers in blocks of 16; a ragged end is the last 16 numbers drawn anew.

    float32 and float64 had drawn a number for each element of the ragged end before, narrower types had not.
    """
    draw = source.uniform32 if dtype == _FLOAT32 else source.uniform64
    transform = box_muller.normal_blocks32 if dtype == _FLOAT32 else box_muller.normal_blocks64
    whole = count - count % 16
    if whole == count:
        return transform(draw(count).reshape(-1, 2, 8)).ravel()
    uniform_numbers = draw(count if redraw_all else whole)[:whole]
    blocks = np.concatenate((uniform_numbers, draw(16))).reshape(-1, 2, 8)
    normal_numbers = transform(blocks).ravel()
    return np.concatenate((normal_numbers[: count - 16], normal_numbers[whole:]))


def exponential(shape: Shape, dtype: DType, lambd: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Draw from the exponential distribution of rate `lambd`."""
    return exponential_(np.empty(shape, dtype), lambd, generator)


def exponential_(input: Array, lambd: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from the exponential distribution of rate `lambd`."""
    require_continuous(input, "Exponential")
    require_positive("exponential_", "lambda", lambd)
    source = chosen(generator)
    with source.lock:
        values = source.uniform64(input.size)
    values = -1.0 / lambd * libm.log1p(-values, input.dtype)
    return fill(input, libm.narrow(values, input.dtype))


def cauchy(
    shape: Shape, dtype: DType, median: float = 0.0, sigma: float = 1.0, generator: MaybeGenerator = None
) -> Array:
    """Draw from the Cauchy distribution."""
    return cauchy_(np.empty(shape, dtype), median, sigma, generator)


def cauchy_(input: Array, median: float = 0.0, sigma: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from the Cauchy distribution."""
    require_positive("cauchy_", "sigma", sigma)
    require_continuous(input, "Cauchy")
    source = chosen(generator)
    with source.lock:
        values = source.uniform64(input.size)
    values = libm.multiply_add(libm.tan(math.pi * (values - 0.5), input.dtype), sigma, median)
    return fill(input, libm.narrow(values, input.dtype))


def log_normal(
    shape: Shape, dtype: DType, mean: float = 1.0, std: float = 2.0, generator: MaybeGenerator = None
) -> Array:
    """Draw the exponential of normal numbers."""
    return log_normal_(np.empty(shape, dtype), mean, std, generator)


def log_normal_(input: Array, mean: float = 1.0, std: float = 2.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` with the exponential of normal numbers."""
    require_positive("log_normal_", "std", std)
    require_floating(input, "log_normal_cpu")
    source = chosen(generator)
    with source.lock:
        values = normal_pairs(source, input.size, input.dtype)
    values = libm.exp(libm.multiply_add(values, std, mean), input.dtype)
    return fill(input, libm.narrow(values, input.dtype))
