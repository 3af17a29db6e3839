"""Distances between the rows of two matrices, or of one."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.unpromised_bits import note_product
from pullback.kernels.accumulation import widened
from pullback.native import by_device
from pullback.typing import Array

# Differences at a time; they stay in the cache.
_CHUNK = 2**20


@by_device
def cdist_forward(x1: Array, x2: Array, p: float) -> Array:
    """The p-norm distances of each row of (*, P, M) from each of (*, R, M): (*, P, R)."""
    a, b = widened(x1), widened(x2)
    batch, rows, columns, width = a.shape[:-2], a.shape[-2], b.shape[-2], a.shape[-1]
    result = np.zeros((*batch, rows, columns), a.dtype)
    if not result.size or not width:
        return result
    step = max(1, _CHUNK // max(1, math.prod(batch) * columns * width))
    for start in range(0, rows, step):
        difference = a[..., start : start + step, None, :] - b[..., None, :, :]
        result[..., start : start + step, :] = _norms(difference, p)
    return result.astype(x1.dtype, copy=False)


def _norms(difference: Array, p: float) -> Array:
    """The p-norms of the last dimension; overwrites what it is given."""
    if p == 2:
        return np.sqrt(np.einsum("...i,...i->...", difference, difference))
    np.abs(difference, out=difference)
    if p == 0:
        counts = np.count_nonzero(difference, axis=-1).astype(difference.dtype)
        return np.where(np.isnan(difference).any(-1), np.nan, counts).astype(difference.dtype, copy=False)
    if p == 1:
        return difference.sum(-1)
    if math.isinf(p):
        return difference.max(-1, initial=0)  # distances are not negative, and 0 where there are no coordinates
    np.power(difference, p, out=difference)
    return difference.sum(-1) ** difference.dtype.type(1 / p)


@by_device
def euclidean_dist(x1: Array, x2: Array) -> Array:
    """The Euclidean distances by one matrix product, for many rows; small ones lose digits."""
    a, b = widened(x1), widened(x2)
    squares = np.einsum("...i,...i->...", a, a)[..., :, None] + np.einsum("...i,...i->...", b, b)[..., None, :]
    note_product(a, b.shape[-2])
    squares -= 2 * np.matmul(a, np.swapaxes(b, -1, -2))
    np.maximum(squares, 0, out=squares)
    return np.sqrt(squares, out=squares).astype(x1.dtype, copy=False)


@by_device
def pdist_forward(input: Array, p: float) -> Array:
    """The p-norm distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    first, second = np.triu_indices(len(input), 1)
    x = widened(input)
    return _norms(x[first] - x[second], p).astype(input.dtype, copy=False)


@by_device
def pair_rows(input: Array, which: int) -> Array:
    """The first (0) or second (1) row of each pair of rows, as indices."""
    return np.asarray(np.triu_indices(len(input), 1)[which])


@by_device
def largest_share(input: Array, largest: Array) -> Array:
    """The signs of those elements of the last dimension whose magnitude is the largest, else zeros."""
    return (np.sign(input) * (np.abs(input) == largest[..., None])).astype(input.dtype, copy=False)


@by_device
def trilinear(input1: Array, input2: Array, weight: Array) -> Array:
    """sum over i, j of input1[b, i] * weight[o, i, j] * input2[b, j]: (batch, outputs)."""
    a, b, w = widened(input1), widened(input2), widened(weight)
    outputs, rows, columns = w.shape
    note_product(a, w.size)
    inner = (a @ w.transpose(1, 0, 2).reshape(rows, outputs * columns)).reshape(len(a), outputs, columns)
    return np.matmul(inner, b[:, :, None])[..., 0].astype(input1.dtype, copy=False)
