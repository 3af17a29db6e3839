"""Maxima over windows of varying place and size, and putting maxima back where they came from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.checks import checked
from pullback.checks.elements import position_out_of_range
from pullback.kernels.index_arrays import check_index
from pullback.kernels.pooling import max_pool2d_with_indices, max_pool3d_with_indices
from pullback.kernels.resampling import resample
from pullback.native import by_device, native
from pullback.typing import Array, Shape

_FEW = 64


@by_device
@checked
def adaptive_max_pool2d(input: Array, output_size: Shape) -> tuple[Array, Array]:
    """The maxima of as many windows as `output_size` says, and their flat positions in the plane."""
    return _adaptive(input, output_size)


@by_device
@checked
def adaptive_max_pool3d(input: Array, output_size: Shape) -> tuple[Array, Array]:
    """The maxima of as many windows as `output_size` says, and their flat positions in the volume."""
    return _adaptive(input, output_size)


@native
def _adaptive(input: Array, counts: Shape) -> tuple[Array, Array]:
    dims = len(counts)
    sizes = input.shape[-dims:]
    tiles = tuple([n // max(1, c) for n, c in zip(sizes, counts, strict=True)])
    if all(c and n % c == 0 for n, c in zip(sizes, counts, strict=True)) and 0 < math.prod(tiles) <= _FEW:
        pool = max_pool2d_with_indices if dims == 2 else max_pool3d_with_indices
        return pool(input, tiles, tiles, (0,) * dims, (1,) * dims, False)
    np.empty((*input.shape[:-dims], *counts), input.dtype)  # refuses sizes for which arange is empty: from 2**63 - 1 on
    places = []
    for n, c in zip(sizes, counts, strict=True):
        starts, ends = np.arange(c) * n // c, -(-(np.arange(c) + 1) * n // c)
        offsets = np.arange(_widest(n, c))
        places.append(np.minimum(starts[:, None] + offsets, ends[:, None] - 1))
    flat = _flat_windows(places, sizes).reshape(-1)
    lead = input.shape[:-dims]
    window = math.prod([p.shape[1] for p in places])
    values = np.take(input.reshape(*lead, math.prod(sizes)), flat, -1).reshape(*lead, *counts, window)
    return _largest(values, np.broadcast_to(flat.reshape(*counts, window), values.shape))


def _widest(n: int, c: int) -> int:
    """The most elements that one of `c` windows over `n` elements has."""
    if not c or n % c == 0:
        return n // c if c else 1
    # Window i begins at the fraction (i n mod c) / c of an element, which is at most 1 - gcd / c, and is n / c long.
    return n // c + (1 if n % c == math.gcd(n, c) else 2)


def _flat_windows(places: list[Any], sizes: Shape) -> Array:
    """Flat positions (*counts, *window) from the positions (count, window) along each dimension."""
    dims = len(places)
    flat: Array = np.zeros((), np.int64)
    for axis, place in enumerate(places):
        shape = [1] * (2 * dims)
        shape[axis], shape[dims + axis] = place.shape
        flat = flat + place.reshape(shape) * math.prod(sizes[axis + 1 :])
    return flat


def _largest(values: Array, positions: Array) -> tuple[Array, Array]:
    """The maximum of each last axis, NaN if there is one, and the position that goes with it."""
    chosen = values.argmax(-1)
    if values.dtype.kind not in "iub":
        missing = values != values
        if not is_at_hand(missing) or missing.any():
            last = values.shape[-1] - 1 - missing[..., ::-1].argmax(-1)
            chosen = np.where(missing.any(-1), last, chosen)
    picked = chosen[..., None]
    return np.take_along_axis(values, picked, -1)[..., 0], np.take_along_axis(positions, picked, -1)[..., 0]


@by_device
@checked
def fractional_max_pool2d(
    input: Array, kernel_size: Shape, output_size: Shape, random_samples: Array
) -> tuple[Array, Array]:
    """The maxima of windows that begin at pseudo-random places, and their flat positions in the plane."""
    return _fractional(input, kernel_size, output_size, random_samples[..., ::-1])


@by_device
@checked
def fractional_max_pool3d(
    input: Array, kernel_size: Shape, output_size: Shape, random_samples: Array
) -> tuple[Array, Array]:
    """The maxima of windows that begin at pseudo-random places, and their flat positions in the volume."""
    return _fractional(input, kernel_size, output_size, random_samples)


def _fractional(input: Array, kernel: Shape, counts: Shape, samples: Array) -> tuple[Array, Array]:
    """`samples` are (N, C, dims): one number from 0 to 1 for each dimension of each plane."""
    dims = len(counts)
    sizes = input.shape[-dims:]
    lead = input.shape[:-dims]
    rows = math.prod(lead)
    flat = np.zeros((rows,) + (1,) * (2 * dims), np.int64)
    for axis in range(dims):
        starts = _starts(samples.reshape(rows, dims)[:, axis], sizes[axis], counts[axis], kernel[axis])
        places = starts[:, :, None] + np.arange(kernel[axis])
        shape = [rows] + [1] * (2 * dims)
        shape[1 + axis], shape[1 + dims + axis] = counts[axis], kernel[axis]
        flat = flat + places.reshape(shape) * math.prod(sizes[axis + 1 :])
    flat = flat.reshape(rows, math.prod(counts) * math.prod(kernel))
    values = np.take_along_axis(input.reshape(rows, math.prod(sizes)), flat, 1)
    window = (*lead, *counts, math.prod(kernel))
    return _largest(values.reshape(window), flat.reshape(window))


def _starts(sample: Array, size: int, count: int, kernel: int) -> Array:
    """Where the windows begin: steps of a fractional length, rounded down, the last window at the end."""
    starts: Array = np.full((len(sample), count), size - kernel, np.int64)
    if count > 1:
        step = sample.dtype.type((size - kernel) / (count - 1))
        shifted = (np.arange(count - 1).astype(sample.dtype) + sample[:, None]) * step
        starts[:, :-1] = shifted.astype(np.int64) - (sample[:, None] * step).astype(np.int64)
    return starts


@by_device
@checked
def max_unpool2d(input: Array, indices: Array, output_size: Shape) -> Array:
    """Planes of zeros with each element at its flat position."""
    return _unpool(input, indices, output_size)


@by_device
@checked
def max_unpool3d(input: Array, indices: Array, output_size: Shape) -> Array:
    """Volumes of zeros with each element at its flat position."""
    return _unpool(input, indices, output_size)


@native
def _unpool(input: Array, indices: Array, sizes: Shape) -> Array:
    plane = math.prod(sizes)
    if not is_at_hand(indices):
        check_index(indices, plane, None)
    elif indices.size and (int(indices.min()) < 0 or int(indices.max()) >= plane):
        wrong = indices[(indices < 0) | (indices >= plane)].reshape(-1)[0]
        raise position_out_of_range(
            f"Found an invalid max index: {int(wrong)} (output volumes are of size {'x'.join(map(str, sizes))})",
            RuntimeError,
        )
    lead = input.shape[: input.ndim - len(sizes)]
    result = np.zeros((*lead, plane), input.dtype)
    flat = (*lead, math.prod(input.shape[len(lead) :]))
    np.put_along_axis(result, indices.reshape(flat), input.reshape(flat), -1)
    return result.reshape(*lead, *sizes)


@by_device
def adaptive_avg_pool2d(input: Array, output_size: Shape) -> Array:
    """Average over the last two dimensions down (or up) to given sizes."""
    return resample(input, output_size, "area", False, None)


@by_device
@checked
def adaptive_avg_pool3d(input: Array, output_size: Shape) -> Array:
    """Average over the last three dimensions down (or up) to given sizes."""
    return resample(input, output_size, "area", False, None)
