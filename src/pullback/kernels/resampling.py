"""Resizing the last dimensions: each by a sparse matrix of its own (nearest, linear, cubic, antialiased, averages).

A map along one dimension is a table of taps: for each output position the input positions it reads and their weights.
The adjoint of a map is the map with the transposed table, so gradients are resized the same way.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.backend.unpromised_bits import note_product
from pullback.checks import checked
from pullback.kernels.accumulation import widened
from pullback.native import by_device, native
from pullback.typing import Array, Shape

Taps = tuple[Any, Any]
"""Positions and weights, both (outputs, taps)."""

# With more taps than this a dense product is faster than adding up shifted copies.
_MANY_TAPS = 8


@by_device
@checked
def resample(
    input: Array, sizes: Shape, method: str, align_corners: bool = False, scales: tuple[float | None, ...] | None = None
) -> Array:
    """Resize the last dimensions to `sizes`; `scales` are the factors that the sizes were computed from, if any."""
    given = (None,) * len(sizes) if scales is None else scales
    old = input.shape[input.ndim - len(sizes) :]
    single = input.dtype.itemsize <= 4
    maps = [_taps(method, *each, align_corners, single) for each in zip(old, sizes, given, strict=True)]
    return _apply(input, maps, old)


@by_device
def resample_back(
    input: Array, sizes: Shape, method: str, align_corners: bool = False, scales: tuple[float | None, ...] | None = None
) -> Array:
    """The adjoint of `resample` of dimensions of `sizes`."""
    given = (None,) * len(sizes) if scales is None else scales
    new = input.shape[input.ndim - len(sizes) :]
    single = input.dtype.itemsize <= 4
    maps = [_transposed_taps(method, *each, align_corners, single) for each in zip(sizes, new, given, strict=True)]
    return _apply(input, maps, new)


def _apply(input: Array, maps: list[Taps], old: Shape) -> Array:
    if input.dtype == np.uint8 and any(t[1] is not None for t in maps):
        return _apply_to_bytes(input, maps)
    result = input if all(t[1] is None for t in maps) else widened(input)
    # Dimensions that shrink come first, so that the others have less to do; of those that grow, the last one, whose
    # elements have to be gathered one by one, while there are few rows.
    ratios = [len(taps) / max(1, size) for (taps, _), size in zip(maps, old, strict=True)]
    order = sorted(range(len(maps)), key=lambda i: (min(ratios[i], 1.0), -i))
    for i in order:
        result = _apply_along(result, maps[i], input.ndim - len(maps) + i)
    if result.dtype != input.dtype:
        result = (np.rint(result) if input.dtype.kind in "iu" else result).astype(input.dtype)
    return result.copy() if result is input else result


def _apply_to_bytes(input: Array, maps: list[Taps]) -> Array:
    """Images of bytes: weights of 16 bits, and rounding after each dimension, the last one first, as in PyTorch."""
    result = input.astype(np.float64)
    for i in reversed(range(len(maps))):
        positions, weights = maps[i]
        exponent = 0
        if weights is not None:
            while exponent < 22 and int(0.5 + weights.max() * 2 ** (exponent + 1)) < 2**15:
                exponent += 1
            weights = np.trunc(weights * 2.0**exponent + np.copysign(0.5, weights))
        summed = _apply_along(result, (positions, weights), input.ndim - len(maps) + i)
        result = np.clip(np.floor(summed / 2.0**exponent + 0.5), 0, 255)
    return result.astype(np.uint8)


@native
def _apply_along(array: Array, taps: Taps, axis: int) -> Array:
    positions, weights = taps
    if positions.shape[1] == 1:
        size = array.shape[axis]
        if len(positions) == size and is_at_hand(positions) and (positions[:, 0] == np.arange(size)).all():
            taken = array
        else:
            taken = np.take(array, positions[:, 0], axis)
        return taken if weights is None else taken * _along(weights[:, 0], array, axis)
    if weights is None:
        weights = np.ones(positions.shape)
    if positions.shape[1] > _MANY_TAPS:
        total = _dense(array, positions, weights, axis)
        unused = True
    else:
        total = np.take(array, positions[:, 0], axis) * _along(weights[:, 0], array, axis)
        for tap in range(1, positions.shape[1]):
            piece = np.take(array, positions[:, tap], axis)
            piece *= _along(weights[:, tap], array, axis)
            total += piece
        unused = not is_at_hand(weights) or bool((weights == 0).any())
    if unused and (not is_at_hand(total) or np.isnan(total).any()):
        return _by_used_taps(array, positions, weights, axis)
    return total


def _by_used_taps(array: Array, positions: Array, weights: Array, axis: int) -> Array:
    """The same where NaN or infinity must not reach places that do not read it: zero times these is NaN."""
    total: Any = 0
    for tap in range(positions.shape[1]):
        factor = _along(weights[:, tap], array, axis)
        total = total + np.where(factor == 0, 0, np.take(array, positions[:, tap], axis) * factor)
    return np.asarray(total, array.dtype)


def _along(weights: Array, array: Array, axis: int) -> Array:
    return weights.astype(array.dtype).reshape((-1,) + (1,) * (array.ndim - 1 - axis))


def _dense(array: Array, positions: Array, weights: Array, axis: int) -> Array:
    matrix = np.zeros((len(positions), array.shape[axis]), array.dtype)
    np.add.at(matrix, (np.arange(len(positions))[:, None], positions), weights.astype(array.dtype))
    tail = math.prod(array.shape[axis + 1 :])
    shape = (*array.shape[:axis], len(positions), *array.shape[axis + 1 :])
    note_product(array, len(positions))
    if tail == 1:
        return (array.reshape(-1, array.shape[axis]) @ matrix.T).reshape(shape)
    return np.matmul(matrix, array.reshape(-1, array.shape[axis], tail)).reshape(shape)


@lru_cache(maxsize=256)
def _taps(method: str, old: int, new: int, scale: float | None, align_corners: bool, single: bool) -> Taps:
    if method == "area":
        return _area(old, new)
    if method in ("nearest", "nearest-exact"):
        return _nearest(old, new, scale, 0.5 if method == "nearest-exact" else 0.0), None
    real: Any = np.float32 if single else np.float64
    step = _step(old, new, scale, align_corners, real)
    if method.endswith("-aa"):
        return _antialiased(old, new, step, real, method)
    if old == new and method == "linear":
        return np.arange(new)[:, None], None
    places = np.arange(new, dtype=real)
    source = places * step if align_corners else step * (places + real(0.5)) - real(0.5)
    if method == "linear":
        source = np.maximum(source, real(0))
        low = np.minimum(source.astype(np.int64), old - 1)
        part = np.clip(source - low, 0, 1)
        return np.stack([low, np.minimum(low + 1, old - 1)], 1), np.stack([1 - part, part], 1)
    low = np.floor(source)
    part = source - low
    positions = np.clip(low.astype(np.int64)[:, None] + np.arange(-1, 3), 0, old - 1)
    return positions, np.stack([_cubic(part + 1), _cubic(part), _cubic(1 - part), _cubic(2 - part)], 1)


def _step(old: int, new: int, scale: float | None, align_corners: bool, real: Any) -> Any:
    """How far apart in the input neighbouring outputs lie."""
    if align_corners:
        return real((old - 1) / (new - 1)) if new > 1 else real(0)
    return real(1 / scale) if scale else real(real(old) / real(new))


def _cubic(x: Array, a: float = -0.75) -> Array:
    """The cubic convolution filter at distances from 0 to 2."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(x.dtype)


def _lanczos(x: Array) -> Array:
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0.0)


def _nearest(old: int, new: int, scale: float | None, shift: float) -> Array:
    if old == new:
        return np.arange(new)[:, None]
    step = np.float32(1 / scale) if scale else np.float32(np.float32(old) / np.float32(new))
    source = np.floor((np.arange(new, dtype=np.float32) + np.float32(shift)) * step).astype(np.int64)
    return np.clip(source, 0, old - 1)[:, None]


def _area(old: int, new: int) -> Taps:
    """Each output is the mean of the inputs that it touches."""
    places = np.arange(new)
    if old == new:
        return places[:, None], None
    starts: Array = places * old // new
    ends: Array = -(-(places + 1) * old // new)
    lengths = ends - starts
    offsets = np.arange(max(1, int(lengths.max(initial=1))))
    inside = offsets < lengths[:, None]
    return np.where(inside, starts[:, None] + offsets, 0), np.where(inside, 1 / np.maximum(lengths, 1)[:, None], 0.0)


def _antialiased(old: int, new: int, step: Any, real: Any, method: str) -> Taps:
    """Filters stretched over all inputs that an output stands for, normalized to sum 1."""
    step = float(step)
    reach = {"linear-aa": 1.0, "cubic-aa": 2.0, "lanczos-aa": 3.0}[method]
    support = reach * max(step, 1.0)
    shrink = 1 / step if step >= 1 else 1.0
    center = step * (np.arange(new) + 0.5)
    starts = np.maximum((center - support + 0.5).astype(np.int64), 0)
    ends = np.minimum((center + support + 0.5).astype(np.int64), old)
    offsets = np.arange(max(1, int((ends - starts).max(initial=1))))
    positions = starts[:, None] + offsets
    distance = np.abs((positions - center[:, None] + 0.5) * shrink)
    if method == "linear-aa":
        weights = np.maximum(1 - distance, 0)
    else:
        weights = _cubic(distance, -0.5) if method == "cubic-aa" else _lanczos(distance)
    weights = np.where(positions < ends[:, None], weights, 0.0)
    total = weights.sum(1, keepdims=True)
    return np.minimum(positions, old - 1), (weights / np.where(total == 0, 1, total)).astype(real)


@lru_cache(maxsize=256)
def _transposed_taps(method: str, old: int, new: int, scale: float | None, align_corners: bool, single: bool) -> Taps:
    """The adjoint's table: for each input position the outputs that read it."""
    positions, weights = _taps(method, old, new, scale, align_corners, single)
    if weights is None:
        if old == new:
            return positions, None
        weights = np.ones(positions.shape)
    outputs = np.broadcast_to(np.arange(new)[:, None], positions.shape)
    used = weights.reshape(-1) != 0
    source, target, weight = positions.reshape(-1)[used], outputs.reshape(-1)[used], weights.reshape(-1)[used]
    order = np.argsort(source, kind="stable")
    source, target, weight = source[order], target[order], weight[order]
    counts = np.bincount(source, minlength=old)
    slot = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = max(1, int(counts.max(initial=1)))
    table: Array = np.zeros((old, width), np.int64)
    factors: Array = np.zeros((old, width), weights.dtype)
    table[source, slot], factors[source, slot] = target, weight
    return table, factors
