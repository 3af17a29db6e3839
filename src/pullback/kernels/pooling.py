"""Pooling over windows: maxima with their positions, averages, and their adjoints, over the last dimensions.

Windows are visited offset by offset (a few passes over whole arrays), never one by one.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.checks.dtypes import refuse_kinds
from pullback.kernels.accumulation import widened
from pullback.kernels.windows import offset_slices, pad_with
from pullback.native import native
from pullback.typing import Array, Shape


def pooled_sizes(sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool) -> Shape:
    """How many windows each dimension has; with `ceil_mode` the last may reach beyond the end, but not start there."""
    counts = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        counts.append(count)
    return tuple(counts)


@native
def max_pool2d_with_indices(
    input: Array, kernel_size: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Array, Array]:
    """The largest element of each window of the last two dimensions, and where it lies in its plane."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)


@native
def max_pool3d_with_indices(
    input: Array, kernel_size: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Array, Array]:
    """The largest element of each window of the last three dimensions, and where it lies in its volume."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool(
    input: Array, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Array, Array]:
    dims = len(kernel)
    refuse_kinds(input, "bc", f"max_pool{dims}d")
    counts, first, offsets, starts = _geometry(input.shape[-dims:], kernel, stride, padding, dilation, ceil_mode)
    padded = _pad_for(input, counts, kernel, stride, padding, dilation, _lowest(input))
    best: Array = np.full((*input.shape[:-dims], *counts), _lowest(input), input.dtype)
    winner = np.empty(best.shape, np.int8 if math.prod(kernel) < 2**7 else np.int32)
    winner[...] = first
    has_nan = input.dtype.kind not in "iub" and (not is_at_hand(input) or bool(np.isnan(np.min(input, initial=0))))
    for number, (_, places) in enumerate(offset_slices(kernel, stride, dilation, counts)):
        candidate = np.ascontiguousarray(padded[(..., *places)])
        larger = candidate > best
        if has_nan:
            larger |= candidate != candidate  # a NaN wins, and nothing is larger than it
        np.maximum(best, candidate, out=best)
        # Numbers grow, so the last winner has the largest: no branch for each element.
        np.maximum(winner, larger.astype(winner.dtype) * winner.dtype.type(number), out=winner)
    return best, np.take(offsets, winner) + starts


@lru_cache(maxsize=256)
def _geometry(
    sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Shape, Array, Array, Array]:
    """Counts of windows, each one's first offset that is not padding, and positions of offsets and beginnings."""
    counts = pooled_sizes(sizes, kernel, stride, padding, dilation, ceil_mode)
    first = _first_offsets(counts, kernel, stride, padding, dilation)
    return (counts, first, *_plane_positions(sizes, counts, kernel, stride, padding, dilation))


def _lowest(input: Array) -> float:
    if input.dtype.kind in "iu":
        return int(np.iinfo(input.dtype).min)
    return -np.inf


def _pad_for(
    input: Array, counts: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, value: float
) -> Array:
    """The input with enough padding behind for all windows, which `ceil_mode` may need more of."""
    sizes = input.shape[-len(kernel) :]
    after = tuple(
        [
            max(0, (c - 1) * s + d * (k - 1) + 1 - n - p)
            for c, s, d, k, n, p in zip(counts, stride, dilation, kernel, sizes, padding, strict=True)
        ]
    )
    return pad_with(input, padding, value, after)


def _first_offsets(counts: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> Array:
    """The number of the first offset of each window that is not padding: the winner where all are -inf."""
    number: Array = np.zeros(counts, np.int64)
    for axis, (c, k, s, p, d) in enumerate(zip(counts, kernel, stride, padding, dilation, strict=True)):
        first = np.maximum(0, -((np.arange(c) * s - p) // d))
        number = number * k + first.reshape((-1,) + (1,) * (len(counts) - 1 - axis))
    return number


def _plane_positions(
    sizes: Shape, counts: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape
) -> tuple[Array, Array]:
    """Flat positions in the unpadded plane of the offsets in a window, and of the windows' beginnings."""
    dims = len(kernel)
    steps = [math.prod(sizes[axis + 1 :]) for axis in range(dims)]
    offsets: Array = np.zeros((), np.int64)
    starts: Array = np.zeros((), np.int64)
    for axis in range(dims):
        tail = (1,) * (dims - 1 - axis)
        offsets = offsets + (np.arange(kernel[axis]) * dilation[axis] * steps[axis]).reshape(-1, *tail)
        starts = starts + ((np.arange(counts[axis]) * stride[axis] - padding[axis]) * steps[axis]).reshape(-1, *tail)
    return offsets.reshape(-1), starts


@native
def put_in_planes(input: Array, indices: Array, sizes: Shape) -> Array:
    """Add each element at its flat position in a plane of `sizes`; the adjoint of `take_from_planes`."""
    dims = len(sizes)
    lead = input.shape[: input.ndim - dims]
    plane, count = math.prod(sizes), math.prod(input.shape[input.ndim - dims :])
    rows = math.prod(lead)
    flat = (indices.reshape(rows, count) + (np.arange(rows) * plane)[:, None]).reshape(-1)
    if input.dtype in (np.float32, np.float64) and is_at_hand(flat):
        # bincount adds in float64 and is the fastest scatter NumPy has; it looks for the largest position.
        total = np.bincount(flat, input.reshape(-1), rows * plane).astype(input.dtype, copy=False)
    else:
        wide = widened(input)
        total = np.zeros(rows * plane, wide.dtype)
        np.add.at(total, flat, wide.reshape(-1))
        total = total.astype(input.dtype, copy=False)
    return total.reshape(*lead, *sizes)


@native
def take_from_planes(input: Array, indices: Array, dims: int) -> Array:
    """The elements at flat positions in the planes that the last `dims` dimensions make."""
    lead = input.shape[: input.ndim - dims]
    flat = input.reshape(*lead, math.prod(input.shape[input.ndim - dims :]))
    places = indices.reshape(*lead, math.prod(indices.shape[indices.ndim - dims :]))
    chosen = np.take_along_axis(flat, places, -1)
    return chosen.reshape(indices.shape)


def unpool_back(grad: Array, indices: Array, dims: int) -> Array:
    """The gradient of `max_unpool2d` and its like: the elements at flat positions in planes."""
    return take_from_planes(grad, indices, dims)


@native
def avg_pool2d(
    input: Array, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    """The mean of each window of the last two dimensions."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@native
def avg_pool3d(
    input: Array, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    """The mean of each window of the last three dimensions."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _avg_pool(
    input: Array, kernel: Shape, stride: Shape, padding: Shape, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    dims = len(kernel)
    refuse_kinds(input, "bc", f"avg_pool{dims}d")
    sizes, ones = input.shape[-dims:], (1,) * dims
    counts = pooled_sizes(sizes, kernel, stride, padding, ones, ceil_mode)
    total = _pad_for(widened(input), counts, kernel, stride, padding, ones, 0)
    for axis in range(dims):
        total = _sum_along(total, total.ndim - dims + axis, kernel[axis], stride[axis], counts[axis])
    divisors = _divisors(sizes, counts, kernel, stride, padding, count_include_pad, divisor_override)
    if input.dtype.kind in "iu":
        return np.trunc(total / divisors).astype(input.dtype)
    return (total / np.asarray(divisors, total.dtype)).astype(input.dtype, copy=False)


def _sum_along(array: Array, axis: int, kernel: int, stride: int, count: int) -> Array:
    """Sums of windows of one dimension: a box is a product of segments, so each dimension is summed on its own."""
    lead = (slice(None),) * axis
    total: Array = array[(*lead, slice(0, stride * (count - 1) + 1, stride))]
    if not total.size:
        return total  # there may be any number of offsets
    for offset in range(1, min(kernel, array.shape[axis])):  # a window may be said to be larger than everything
        piece = array[(*lead, slice(offset, offset + stride * (count - 1) + 1, stride))]
        if offset == 1:
            total = total + piece
        else:
            total += piece
    return total


@lru_cache(maxsize=256)
def _divisors(
    sizes: Shape, counts: Shape, kernel: Shape, stride: Shape, padding: Shape, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    if divisor_override is not None:
        return np.asarray(float(divisor_override))
    divisor: Array = np.ones((), np.float64)
    for n, c, k, s, p in zip(sizes, counts, kernel, stride, padding, strict=True):
        start: Array = np.arange(c) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        divisor = divisor[..., None] * (end - start)
    return divisor


@native
def avg_pool_back(
    input: Array, sizes: Shape, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Array:  # fmt: skip
    """The adjoint of average pooling over dimensions of `sizes`."""
    dims = len(kernel_size)
    counts = input.shape[-dims:]
    divisors = _divisors(sizes, counts, kernel_size, stride, padding, count_include_pad, divisor_override)
    share = widened(input) / np.asarray(divisors, widened(input).dtype)
    for axis in range(dims):
        n, p, k, s, c = sizes[axis], padding[axis], kernel_size[axis], stride[axis], counts[axis]
        share = _spread_along(share, share.ndim - dims + axis, n, p, k, s, c)
    return share.astype(input.dtype, copy=False)


def _spread_along(array: Array, axis: int, size: int, padding: int, kernel: int, stride: int, count: int) -> Array:
    lead = (slice(None),) * axis
    length = max(size + 2 * padding, (count - 1) * stride + kernel)
    total = np.zeros((*array.shape[:axis], length, *array.shape[axis + 1 :]), array.dtype)
    for offset in range(kernel):
        total[(*lead, slice(offset, offset + stride * (count - 1) + 1, stride))] += array
    return np.ascontiguousarray(total[(*lead, slice(padding, padding + size))])
