"""Histograms over intervals of one's own or of equal width, in one or several dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.checks import checked
from pullback.checks.elements import value_out_of_range
from pullback.checks.histograms import _not_finite
from pullback.native import by_device
from pullback.typing import Array


@by_device
@checked
def histogramdd(
    points: Array, bins: Sequence[Any], limits: Sequence[float] | None, weights: Array | None, density: bool
) -> tuple[Array, list[Array]]:
    """How many points (or how much of their weight) lie in each box, and the edges of the boxes.

    `bins` holds, for each dimension, a number of equal intervals or the edges; the last interval includes its end.
    """
    dtype = points.dtype
    if dtype.itemsize == 2:
        points, bins = points.astype(np.float32), [given.astype(np.float32) for given in bins]
    edges = [_edges(points[:, d], b, d, limits) for d, b in enumerate(bins)]
    inside: Array = np.ones(len(points), np.bool_)
    places: Array = np.zeros(len(points), np.int64)
    for d, edge in enumerate(edges):
        column = points[:, d]
        found = np.searchsorted(edge, column, "right") - 1
        found = np.where(column == edge[-1], len(edge) - 2, found)
        inside &= (column >= edge[0]) & (column <= edge[-1])
        places = places * (len(edge) - 1) + np.clip(found, 0, len(edge) - 2)
    shape = [len(edge) - 1 for edge in edges]
    kept = None if weights is None else weights.reshape(-1)[inside]
    hist = np.bincount(places[inside], kept, int(np.prod(shape))).reshape(shape).astype(points.dtype)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            hist = hist / np.diff(edge).reshape([-1 if k == d else 1 for k in range(len(shape))])
    return hist.astype(dtype), [edge.astype(dtype) for edge in edges]


def _edges(values: Array, bins: Any, dim: int, limits: Sequence[float] | None) -> Array:
    if isinstance(bins, np.ndarray):
        return bins
    if limits is not None:
        low, high = float(limits[2 * dim]), float(limits[2 * dim + 1])
    elif values.size:
        low, high = float(values.min()), float(values.max())
    else:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise value_out_of_range(_not_finite(dim, low, high))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1).astype(values.dtype)


@by_device
def unravel(positions: Array, shape: Sequence[int]) -> tuple[Array, ...]:
    """The coordinates, in a tensor of `shape`, of positions counted in row-major order."""
    parts: list[Array] = []
    rest = positions
    for size in reversed(shape):
        parts.append(np.asarray(rest % size))
        rest = rest // size
    return tuple(reversed(parts))


@by_device
@checked
def xor_bits(input: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    """The exclusive or of the bits of the elements, floating-point ones as double, integers as 64-bit numbers."""
    wide = input.astype(np.float64) if input.dtype.kind in "fV" else input.astype(np.int64)
    if not input.ndim:
        return wide.view(np.uint64)
    return np.asarray(np.bitwise_xor.reduce(wide.view(np.uint64), axis=dim or None, keepdims=keepdim), order="C")
