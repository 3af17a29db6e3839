"""The continuous distributions: uniform, normal, exponential, Cauchy and log-normal.

Each has two faces as in PyTorch: `name(shape, dtype, ...)` makes an array, `name_(input, ...)` fills one in memory
order. Numbers are drawn in float64 and rounded, except that float32 and narrower uniforms use 24 bits.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from pullback.backend import libm
from pullback.backend.dtype import real_of
from pullback.backend.random import box_muller
from pullback.backend.random.checks import (
    require_continuous,
    require_floating,
    require_positive,
    require_uniform_bounds,
)
from pullback.backend.random.engine import fill_exponential, fill_normal, fill_normal_pairs, fill_uniform
from pullback.backend.random.generator import Generator, chosen
from pullback.backend.random.memory_order import fill, real_view
from pullback.native import by_device
from pullback.typing import Array, DType, Shape

_ARRAYS = (np.ndarray, np.generic)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

MaybeGenerator: TypeAlias = Generator | None


def uniform(shape: Shape, dtype: DType, low: float = 0.0, high: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Draw from [low, high); for a complex dtype both parts are drawn so.

    >>> uniform((2,), np.dtype("float32"), generator=Generator().manual_seed(0))
    array([0.4962566, 0.7682218], dtype=float32)
    """
    if dtype.kind in "cW":
        return uniform((*shape, 2), real_of(dtype), low, high, generator).view(dtype)[..., 0]
    return uniform_(np.empty(shape, dtype), low, high, generator)


@by_device
def uniform_(input: Array, low: float = 0.0, high: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from [low, high)."""
    if input.dtype.kind in "cW":
        uniform_(real_view(input), low, high, generator)
        return input
    if low != 0 or high != 1 or input.dtype.kind != "f":
        require_uniform_bounds(input.dtype, low, high)
    source = chosen(generator)
    if fill_uniform(source.memory, input, low, high):
        source.was_read = source.was_read or input.size > 0
        return input
    return fill(input, _draw_uniform(input.size, input.dtype, low, high, source))


def _draw_uniform(count: int, dtype: DType, low: float, high: float, source: Generator) -> Array:
    with source.lock:
        values = source.uniform64(count) if dtype == _FLOAT64 else source.uniform32(count)
    computed = values.dtype
    if low == 0 and high == 1 and dtype == computed:
        return values
    from_, to = float(computed.type(low)), float(computed.type(high))
    values = libm.narrow(libm.multiply_add(values, float(computed.type(to - from_)), from_), dtype)
    values[values == dtype.type(to)] = dtype.type(from_)  # rounding up must not reach the open end
    return values


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
    if type(mean) is float and type(std) is float and dtype.kind == "f":
        return normal_(np.empty(shape, dtype), mean, std, generator)
    if not isinstance(mean, _ARRAYS) and not isinstance(std, _ARRAYS):
        if dtype.kind in "cW":
            return normal((*shape, 2), real_of(dtype), mean, std / math.sqrt(2), generator).view(dtype)[..., 0]
        return normal_(np.empty(shape, dtype), mean, std, generator)
    if not isinstance(std, _ARRAYS):
        values = normal(shape, dtype, 0.0, std, generator)
    elif std.dtype.kind in "cW":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    elif (std < 0).any():
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but the least is {std.min()}")
    else:
        values = normal(shape, dtype, 0.0, 1.0, generator)
        values *= std.astype(real_of(dtype), copy=False)
    values += np.asarray(mean).astype(dtype)
    return values


@by_device
def normal_(input: Array, mean: float | complex = 0.0, std: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from the normal distribution; both parts of complex numbers have the mean `mean`."""
    if input.dtype.kind in "cW":
        normal_(real_view(input), mean, std / math.sqrt(2), generator)
        return input
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if isinstance(mean, complex):
        raise TypeError(f"normal(): argument 'mean' (position 1) must be float, not complex: {mean}")
    source = chosen(generator)
    if _fill_normal(source, input, mean, std):
        source.was_read = source.was_read or input.size > 0
        return input
    require_floating(input.size, input.dtype, "normal_kernel_cpu")
    contiguous = input.flags.c_contiguous
    return fill(input, _draw_normal(input.size, input.dtype, mean, std, source, contiguous=contiguous))


def _fill_normal(source: Generator, input: Array, mean: float, std: float) -> bool:
    """Draw by compiled loops, if there are any for this array."""
    if input.size >= 16:
        return fill_normal(source.memory, input, mean, std)
    with source.lock:
        left = fill_normal_pairs(source.memory, input, source.next_normal, mean, std)
        if left is False:
            return False
        source.next_normal = left
    return True


def _draw_normal(
    count: int, dtype: DType, mean: float, std: float, source: Generator, *, contiguous: bool = True
) -> Array:
    with source.lock:
        if count < 16 or not contiguous:
            values = normal_pairs(source, count, dtype)
        elif dtype == _FLOAT64:
            values = _normal_many(source, count, _FLOAT64, redraw_all=True)
        else:
            values = _normal_many(source, count, _FLOAT32, redraw_all=dtype == _FLOAT32)
    values = libm.multiply_add(values, std, mean)
    return libm.narrow(values, dtype)


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
    source.next_normal = None
    if len(stream) > count:  # may be asked for in float64, so it is exact whatever the dtype of this draw
        source.next_normal = math.sqrt(-2 * math.log1p(-float(numbers[-1]))) * math.sin(float(angle[-1]))
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


@by_device
def exponential_(input: Array, lambd: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from the exponential distribution of rate `lambd`."""
    require_continuous(input.size, input.dtype, "Exponential")
    require_positive("exponential_", "lambda", lambd)
    source = chosen(generator)
    if fill_exponential(source.memory, input, lambd):
        source.was_read = source.was_read or input.size > 0
        return input
    with source.lock:
        values = source.uniform64(input.size)
    return fill(input, libm.narrow(-1.0 / lambd * libm.log1p(-values, input.dtype), input.dtype))


def cauchy(
    shape: Shape, dtype: DType, median: float = 0.0, sigma: float = 1.0, generator: MaybeGenerator = None
) -> Array:
    """Draw from the Cauchy distribution."""
    return _draw_cauchy(math.prod(shape), dtype, median, sigma, generator).reshape(shape)


@by_device
def cauchy_(input: Array, median: float = 0.0, sigma: float = 1.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` from the Cauchy distribution."""
    return fill(input, _draw_cauchy(input.size, input.dtype, median, sigma, generator))


def _draw_cauchy(count: int, dtype: DType, median: float, sigma: float, generator: MaybeGenerator) -> Array:
    require_positive("cauchy_", "sigma", sigma)
    require_continuous(1, dtype, "Cauchy")  # even if there is nothing to draw
    source = chosen(generator)
    with source.lock:
        values = source.uniform64(count)
    return libm.narrow(libm.multiply_add(libm.tan(math.pi * (values - 0.5), dtype), sigma, median), dtype)


def log_normal(
    shape: Shape, dtype: DType, mean: float = 1.0, std: float = 2.0, generator: MaybeGenerator = None
) -> Array:
    """Draw the exponential of normal numbers."""
    return _draw_log_normal(math.prod(shape), dtype, mean, std, generator).reshape(shape)


@by_device
def log_normal_(input: Array, mean: float = 1.0, std: float = 2.0, generator: MaybeGenerator = None) -> Array:
    """Fill `input` with the exponential of normal numbers."""
    return fill(input, _draw_log_normal(input.size, input.dtype, mean, std, generator))


def _draw_log_normal(count: int, dtype: DType, mean: float, std: float, generator: MaybeGenerator) -> Array:
    require_positive("log_normal_", "std", std)
    require_floating(count, dtype, "log_normal_cpu")
    source = chosen(generator)
    with source.lock:
        values = normal_pairs(source, count, dtype)
    return libm.narrow(libm.exp(libm.multiply_add(values, std, mean), dtype), dtype)
