"""Padding: with a constant, with the edge repeated, mirrored or wrapped around, and the adjoints of these."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.checks import checked
from pullback.checks.numbers import checked_number
from pullback.kernels.accumulation import widened
from pullback.native import by_device, native
from pullback.typing import Array, Scalar, Shape


@native
@checked
def constant_pad_nd(input: Array, pad: Shape, value: Scalar = 0) -> Array:
    """Put `value` around the last dimensions; `pad` is (before, after) from the last dimension on, negative crops."""
    lead = input.ndim - len(pad) // 2
    source, target, sizes = [slice(None)] * lead, [slice(None)] * lead, list(input.shape[:lead])
    for d in range(lead, input.ndim):
        position = 2 * (input.ndim - 1 - d)
        before, after, size = pad[position], pad[position + 1], input.shape[d]
        sizes.append(size + before + after)
        source.append(slice(max(0, -before), size - max(0, -after)))
        target.append(slice(max(0, before), size + before + after - max(0, after)))
    if value:
        given = value if isinstance(value, complex) else float(value)
        result = np.full(sizes, checked_number(given, input.dtype), input.dtype)
    else:
        result = np.zeros(sizes, input.dtype)
    result[tuple(target)] = input[tuple(source)]
    return result


@native
def edge_pad(input: Array, pad: Shape, mode: str) -> Array:
    """Pad the last dimensions from the input itself: 'reflect', 'replicate' or 'circular'; negative sizes crop."""
    dims = _padded_dims(input, pad)
    if any(n < 0 for n in pad):
        result = input
        for d, (before, after) in dims:
            result = np.take(result, _sources(input.shape[d], before, after, mode), d)
        return result
    sizes, middle = list(input.shape), [slice(None)] * input.ndim
    for d, (before, after) in dims:
        middle[d] = slice(before, before + sizes[d])
        sizes[d] += before + after
    result = np.empty(sizes, input.dtype)
    result[tuple(middle)] = input
    for d, (before, after) in dims:
        # Dimensions done before this one are whole, those after it still lack their edges.
        place = list(middle)
        sources = _sources(input.shape[d], before, after, mode) + before
        for edge in (slice(0, before), slice(before + input.shape[d], sizes[d])):
            if edge.start < edge.stop:
                place[d] = edge
                result[tuple(place)] = result[(*middle[:d], sources[edge], *middle[d + 1 :])]
        middle[d] = slice(None)
    return result


def _padded_dims(input: Array, pad: Shape) -> list[tuple[int, tuple[int, int]]]:
    return [(input.ndim - 1 - i, (pad[2 * i], pad[2 * i + 1])) for i in range(len(pad) // 2)]


def _sources(size: int, before: int, after: int, mode: str) -> Array:
    """For each place along a padded dimension, the place it is taken from."""
    places = np.arange(-before, size + after)
    if mode == "circular":
        return places % size
    if mode == "replicate":
        return np.clip(places, 0, size - 1)
    places = np.abs(places)
    return np.where(places >= size, 2 * (size - 1) - places, places)


@native
def edge_pad_back(input: Array, sizes: Shape, pad: Shape, mode: str) -> Array:
    """The adjoint of `edge_pad` of dimensions of `sizes`: what was taken several times is added up."""
    result = widened(input)
    for d, (before, after) in _padded_dims(input, pad):
        if before or after:
            size = sizes[d - input.ndim]
            result = _add_back(result, d, size, before, _sources(size, before, after, mode))
    return result.astype(input.dtype, copy=result is input)


def _add_back(padded: Array, d: int, size: int, before: int, sources: Array) -> Array:
    """Add each place along dimension d to its source: the middle, and then either edge, at once."""
    lead = (slice(None),) * d
    first, last = max(0, before), min(len(sources), before + size)
    result = np.zeros((*padded.shape[:d], size, *padded.shape[d + 1 :]), padded.dtype)
    result[(*lead, slice(first - before, last - before))] = padded[(*lead, slice(first, last))]
    for edge in (slice(0, first), slice(max(first, last), len(sources))):
        places, values = sources[edge], padded[(*lead, edge)]
        if len(places) and not is_at_hand(places):
            np.add.at(result, (*lead, places), values)
            continue
        if len(places) and places[0] == places[-1]:  # an edge that was repeated
            places, values = places[:1], values.sum(d, keepdims=True)
        result[(*lead, places)] += values
    return result


@by_device
def reflection_pad1d(input: Array, padding: Shape) -> Array:
    """Mirror the last 1 dimension(s) at their edges."""
    return edge_pad(input, padding, "reflect")


@by_device
def replication_pad1d(input: Array, padding: Shape) -> Array:
    """Repeat the edges of the last 1 dimension(s)."""
    return edge_pad(input, padding, "replicate")


@by_device
def reflection_pad2d(input: Array, padding: Shape) -> Array:
    """Mirror the last 2 dimension(s) at their edges."""
    return edge_pad(input, padding, "reflect")


@by_device
def replication_pad2d(input: Array, padding: Shape) -> Array:
    """Repeat the edges of the last 2 dimension(s)."""
    return edge_pad(input, padding, "replicate")


@by_device
def reflection_pad3d(input: Array, padding: Shape) -> Array:
    """Mirror the last 3 dimension(s) at their edges."""
    return edge_pad(input, padding, "reflect")


@by_device
def replication_pad3d(input: Array, padding: Shape) -> Array:
    """Repeat the edges of the last 3 dimension(s)."""
    return edge_pad(input, padding, "replicate")
