"""The discrete distributions that need one draw per element: integers, Bernoulli, geometric, permutations, categories.

As in `continuous`, a name with an underscore fills its argument in memory order.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.backend.libm import narrow
from pullback.backend.random.checks import (
    digits_of,
    greatest_of,
    is_floating,
    require_within,
    unsupported,
)
from pullback.backend.random.continuous import exponential_
from pullback.backend.random.engine import fill_bernoulli, fill_integers, fill_permutation
from pullback.backend.random.generator import Generator, chosen
from pullback.backend.random.memory_order import fill, paired
from pullback.native import by_device
from pullback.typing import Array, DType, Shape

_WIDE_RANGE = 2**28  # from here on the remainder of a 32-bit word would be noticeably biased
_LARGE_PERMUTATION = (2**32 - 1) // 20
_INT64 = np.dtype(np.int64)


def randint(low: int, high: int, shape: Shape, dtype: DType = _INT64, generator: Generator | None = None) -> Array:
    """Draw integers from [low, high).

    >>> randint(0, 10, (5,), generator=Generator().manual_seed(0))
    array([4, 9, 3, 0, 3])
    """
    return _draw_integers(math.prod(shape), dtype, low, high, generator).reshape(shape)


@by_device
def random_(input: Array, low: int | None = None, high: int | None = None, generator: Generator | None = None) -> Array:
    """Fill `input` with integers from [low, high).

    Without `high` they go up to the greatest integer that the dtype holds exactly; without both they start at 0.
    """
    return fill(input, _draw_integers(input.size, input.dtype, low, high, generator))


def _draw_integers(count: int, dtype: DType, low: int | None, high: int | None, generator: Generator | None) -> Array:
    source = chosen(generator)
    if low is None and high is None:
        with source.lock:
            return narrow(_random_non_negative(source, count, dtype), dtype)
    first, width = _first_and_width(dtype, 0 if low is None else low, high)
    if dtype is _INT64 and source.memory is not None:
        values = np.empty(count, _INT64)
        if fill_integers(source.memory, values, first, width):
            source.was_read = source.was_read or count > 0
            return values
    with source.lock:
        return narrow(_random_range(source, count, first, width), dtype)


def _random_non_negative(source: Generator, count: int, dtype: DType) -> Array:
    if dtype.kind == "c" or dtype.name in ("uint16", "uint32", "uint64"):
        raise unsupported("random_kernel_cpu", dtype)
    if dtype.name in ("int64", "float64"):
        width = 2**63 if dtype.kind == "i" else 2**53 + 1
        return source.random64(count) % np.uint64(width)
    width = 2 ** digits_of(dtype) + 1 if is_floating(dtype) else int(greatest_of(dtype)) + 1
    return source.random(count) % np.uint32(width)


def _first_and_width(dtype: DType, low: int, high: int | None) -> tuple[int, int]:
    """The least integer of [low, high) that `dtype` can hold, and how many integers there are."""
    if dtype is _INT64 and high is not None and -(2**63) <= low < high < 2**63:
        return low, high - low
    if dtype.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    for bound in (low, 0 if high is None else high):
        if not -(2**63) <= bound < 2**63:
            raise ValueError(f"Overflow when unpacking long long: {bound} does not fit into 64 bits")
    if high is None:
        high = 1 + (2 ** digits_of(dtype) if is_floating(dtype) else min(int(greatest_of(dtype)), 2**63 - 1))
        if dtype.name == "uint64":
            require_within(dtype, "to - 1", -1)
    elif low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    require_within(dtype, "from", low)
    require_within(dtype, "to - 1", high - 1)
    if is_floating(dtype):
        _warn_if_inexact(dtype, low, high)
        low, high = _narrowed(dtype, low, high)
    return low, high - low


def _narrowed(dtype: DType, low: int, high: int) -> tuple[int, int]:
    """Move bounds beyond the dtype's precision inwards by PyTorch's rule, so that no sample is rounded past them."""
    first, last = _as_int64(float(dtype.type(low + 1))), _as_int64(float(dtype.type(high - 1)))
    narrowed = low, high
    if first < low:
        narrowed = first + _spacing(dtype, low + 1), high
    if last >= high:
        narrowed = narrowed[0], last - _spacing(dtype, high - 1)
    if narrowed[0] >= narrowed[1]:
        raise RuntimeError(
            f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={narrowed[0]} "
            f">= to={narrowed[1]}"
        )
    return narrowed


def _as_int64(value: float) -> int:
    """An integer as the processor converts it: what lies beyond 64 bits becomes the least one."""
    return int(value) if -(2**63) <= value < 2**63 else -(2**63)


def _spacing(dtype: DType, value: int) -> int:
    return int(1 << (abs(value).bit_length() - digits_of(dtype)))


def _warn_if_inexact(dtype: DType, low: int, high: int) -> None:
    digits = digits_of(dtype)
    for name, value in (("from", low), ("to - 1", high - 1)):
        if abs(value) > 2**digits:
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {dtype.name} can "
                f"support discrete uniform distribution only within this range: {value} will be rounded",
                UserWarning,
                stacklevel=4,
            )


def _random_range(source: Generator, count: int, first: int, width: int) -> Array:
    if width < _WIDE_RANGE:
        values = (source.random(count) % np.uint32(width)).astype(np.int64)
        return values + first if first else values
    words = source.random64(count)
    if width < 2**64:
        words %= np.uint64(width)
        words += np.uint64(first % 2**64)
    return words.view(np.int64)


@by_device
def bernoulli(p: Array, generator: Generator | None = None) -> Array:
    """Draw 1 with probability `p`, else 0, for each element of an array, in its dtype.

    >>> bernoulli(np.array([0.1, 0.5, 0.9]), Generator().manual_seed(0))
    array([0., 0., 1.])
    """
    return bernoulli_(np.empty(p.shape, p.dtype), p, generator)


@by_device
def bernoulli_(input: Array, p: float | Array = 0.5, generator: Generator | None = None, success: float = 1.0) -> Array:
    """Fill `input` with `success` with probability `p`, a number or an array that broadcasts to it, else with 0."""
    dtype = input.dtype
    if dtype.kind in "cu" and input.size and (dtype.kind == "c" or dtype.name in ("uint16", "uint32", "uint64")):
        raise unsupported("bernoulli_scalar_cpu_", dtype)
    source = chosen(generator)
    if isinstance(p, (np.ndarray, np.generic)):
        return fill(input, _bernoulli_each(source, paired(input, np.asarray(p))).astype(dtype))
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if fill_bernoulli(source.memory, input, p, success):
        source.was_read = source.was_read or input.size > 0
        return input
    with source.lock:
        words = source.random64(input.size)
    words &= np.uint64(2**53 - 1)
    values = (words < np.uint64(math.ceil(p * 2**53))).astype(dtype)
    return fill(input, values if success == 1 else values * dtype.type(success))


def _bernoulli_each(source: Generator, p: Array) -> Array:
    if not is_floating(p.dtype):
        raise unsupported("bernoulli_tensor_cpu_p_", p.dtype)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: a probability lies outside of [0, 1]"
        )
    with source.lock:
        if p.dtype.itemsize == 8:
            return source.uniform64(p.size) < p
        return source.uniform32(p.size) < p.astype(np.float32)


def geometric(shape: Shape, dtype: DType, p: float, generator: Generator | None = None) -> Array:
    """Draw how many trials of probability `p` it takes until the first success."""
    return geometric_(np.empty(shape, dtype), p, generator)


@by_device
def geometric_(input: Array, p: float, generator: Generator | None = None) -> Array:
    """Fill `input` with how many trials of probability `p` it takes until the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if input.size and (input.dtype.kind in "cb" or input.dtype.name in ("uint16", "uint32", "uint64")):
        raise unsupported("geometric_cpu", input.dtype)
    source = chosen(generator)
    with source.lock:
        values = source.uniform64(input.size)
    with np.errstate(divide="ignore"):
        trials = np.ceil(np.log(values) / math.log1p(-p))
    return fill(input, narrow(trials, input.dtype))


def randperm(n: int, dtype: DType = _INT64, generator: Generator | None = None) -> Array:
    """Draw a permutation of 0 ... n - 1.

    >>> randperm(5, generator=Generator().manual_seed(0))
    array([4, 0, 1, 3, 2])
    """
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype.kind in "cb":
        raise unsupported("randperm", dtype)
    if dtype is not _INT64:
        _check_permutation(n, dtype)
    source = chosen(generator)
    if n < _LARGE_PERMUTATION and source.memory is not None:
        values = np.empty(n, _INT64)
        if fill_permutation(source.memory, values):
            source.was_read = source.was_read or n > 1
            return values.astype(dtype, copy=False)
    return _draw_permutation(n, dtype, source)


def _check_permutation(n: int, dtype: DType) -> None:
    if is_floating(dtype) and n > 2 ** digits_of(dtype) + 1:
        most = 2049 if dtype.name == "float16" else f"2^{digits_of(dtype)}+1"
        raise RuntimeError(f"n cannot be greater than {most} for {scalar_type_name(dtype)} type, but got {n}")
    if n > greatest_of(dtype):
        type_name = "int" if dtype.name == "int32" else f"{dtype.name}_t"
        raise RuntimeError(f"value cannot be converted to type {type_name} without overflow: {n}")


def _draw_permutation(n: int, dtype: DType, source: Generator) -> Array:
    remaining = np.arange(n, 0, -1)
    with source.lock:
        if n < _LARGE_PERMUTATION:
            words = source.random(max(n - 1, 0))
            targets = np.arange(n)
            targets[: n - 1] += words % remaining[: n - 1].astype(np.uint32)
            return _exchange_upwards(targets).astype(dtype)
        words64 = source.random64(n)
    # Here element i goes to a place at or below it. Read backwards that is the exchange upwards of the inverse.
    places = words64 % remaining[::-1].astype(np.uint64)
    reversed_inverse = _exchange_upwards((n - 1 - places.astype(np.int64))[::-1])
    permutation = np.empty(n, dtype)
    permutation[n - 1 - reversed_inverse[::-1]] = np.arange(n)
    return permutation


def _exchange_upwards(targets: Array) -> Array:
    """Exchange elements i and targets[i] >= i of 0 ... n - 1, for i in order.

    Element i is final after step i. What it takes over is the value that an earlier step k left at its target, namely
    the value `carried[k]` that stood at k when k's turn came, or the target itself if no step had touched it; and
    carried[k] is what the last step that had k as its target left there. So `carried` is a forest, whose roots are
    found by doubling the length of the jumps.
    """
    targets = targets.astype(np.int32 if len(targets) < 2**31 else np.int64)
    index = np.arange(len(targets), dtype=targets.dtype)
    last, previous = _last_and_previous_steps(targets, index)
    parent = np.where(last == index, previous, last)
    carried = np.where(parent < 0, index, parent)
    moving = np.flatnonzero(parent >= 0)
    while len(moving):
        here = carried[moving]
        further = carried[here]
        carried[moving] = further
        moving = moving[further != here]
    return np.where(previous < 0, targets, carried[previous])


def _last_and_previous_steps(targets: Array, index: Array) -> tuple[Array, Array]:
    """For each target the last step that has it (or -1), and for each step the one before it with the same target.

    Of several values assigned to one element NumPy keeps the last. Each round finds the last of the steps that remain
    for their targets; few targets have many steps, so the rounds shrink fast.
    """
    last = np.full_like(targets, -1)
    last[targets] = index
    previous = np.full_like(targets, -1)
    later, latest = last.copy(), last.copy()
    steps = index[last[targets] != index]
    while len(steps):
        aims = targets[steps]
        latest[aims] = steps
        found = latest[aims] == steps
        previous[later[aims[found]]] = steps[found]
        later[aims[found]] = steps[found]
        steps = steps[~found]
    return last, previous


@by_device
def multinomial(input: Array, num_samples: int, replacement: bool = False, generator: Generator | None = None) -> Array:
    """Draw the indices of `num_samples` categories per row, with probabilities proportional to `input`."""
    _check_multinomial(input, num_samples, replacement)
    if not replacement or num_samples == 1:
        return _multinomial_by_race(input, num_samples, generator)
    rows = np.atleast_2d(input)
    cumulative: Array = np.cumsum(rows, -1, dtype=np.float64 if input.dtype.itemsize == 8 else np.float32)
    if not (rows >= 0).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not (cumulative[:, -1] > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not np.isfinite(cumulative).all():
        raise RuntimeError("invalid multinomial distribution (encountering infinite or NaN probability entry)")
    cumulative /= cumulative[:, -1:]
    cumulative[:, -1] = 1
    source = chosen(generator)
    with source.lock:
        points = source.uniform64(len(rows) * num_samples).reshape(len(rows), num_samples)
    return _search_rows(cumulative, points).reshape(*input.shape[:-1], num_samples)


def _search_rows(rows: Array, values: Array) -> Array:
    """Where the values of each row belong in the same row of `rows`, which are sorted."""
    if len(rows) == 1:
        return np.searchsorted(rows[0], values)
    # Complex numbers are ordered by their real parts and then by the imaginary ones: all rows make one sorted array.
    number = np.arange(len(rows))[:, None]
    keys, wanted = np.empty(rows.shape, np.complex128), np.empty(values.shape, np.complex128)
    keys.real, keys.imag, wanted.real, wanted.imag = number, rows, number, values
    return np.searchsorted(keys.ravel(), wanted) - number * rows.shape[1]


def _multinomial_by_race(input: Array, num_samples: int, generator: Generator | None) -> Array:
    """Categories finish after exponential times divided by their weights; the first ones are drawn."""
    if not np.isfinite(input).all() or (input < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (input.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    # The times lie in memory as the weights do; where expanded ones share memory, row by row.
    times = np.empty(input.shape, input.dtype) if 0 in input.strides else np.empty_like(input)
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = input / exponential_(times, 1.0, generator)
    if num_samples == 1:
        return speed.argmax(-1, keepdims=True)
    return np.ascontiguousarray((-speed).argsort(-1, kind="stable")[..., :num_samples])


def _check_multinomial(input: Array, num_samples: int, replacement: bool) -> None:
    if input.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, but it has {input.ndim} dimensions")
    if not is_floating(input.dtype):
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {scalar_type_name(input.dtype)}"
        )
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, but got {num_samples}")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
            f"{num_samples} were asked for and there are {input.shape[-1]} categories"
        )
    if input.shape[-1] > 2**24:
        raise RuntimeError(f"number of categories cannot exceed 2^24, but there are {input.shape[-1]}")
