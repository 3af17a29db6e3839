"""Sums, means or maxima of bags of rows of a table. Modes are 0 sum, 1 mean, 2 max."""

from __future__ import annotations

import numpy as np

from pullback.checks import checked
from pullback.kernels.accumulation import widened
from pullback.kernels.embeddings import check_rows
from pullback.native import by_device, native
from pullback.typing import Array


@native
@checked
def embedding_bag_forward(
    weight: Array, indices: Array, offsets: Array, per_sample_weights: Array | None, mode: int, padding_idx: int,
    scale_grad_by_freq: bool, sparse: bool = False,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """The bags; for each index its bag and its factor; for each bag its size and, for maxima, the rows chosen."""
    check_rows("embedding_bag", weight, indices)
    bags, width = len(offsets), weight.shape[1]
    lengths: Array = np.diff(np.append(offsets, len(indices)))
    owner: Array = np.repeat(np.arange(bags), lengths)
    counted = indices != padding_idx
    sizes = np.bincount(owner[counted], minlength=bags)
    rows = np.where(counted[:, None], widened(np.take(weight, indices, 0)), 0)
    factors = counted.astype(rows.dtype)
    chosen: Array = np.full((bags, width) if mode == 2 else (0,), -1, np.int64)
    if mode == 2:
        result, chosen = _maxima(rows[counted], indices[counted], owner[counted], bags)
    else:
        if per_sample_weights is not None:
            factors = factors * per_sample_weights
        elif mode == 1:
            factors = factors / np.maximum(sizes, 1)[owner].astype(rows.dtype)
        result = np.zeros((bags, width), rows.dtype)
        filled = lengths > 0
        if filled.any():
            result[filled] = np.add.reduceat(rows * factors[:, None], offsets[filled], 0)
    return result.astype(weight.dtype, copy=False), owner, factors.astype(weight.dtype, copy=False), sizes, chosen


def _maxima(rows: Array, indices: Array, owner: Array, bags: int) -> tuple[Array, Array]:
    """The maxima of bags and the table rows they come from (-1 for empty bags): the first of equal ones."""
    best, chosen = np.zeros((bags, rows.shape[1]), rows.dtype), np.full((bags, rows.shape[1]), -1, np.int64)
    if len(rows):
        starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
        heads = rows[starts]
        # NaN is larger than nothing, and nothing is larger than a NaN at the head.
        top = np.where(np.isnan(heads), heads, np.fmax.reduceat(rows, starts, 0))
        number = np.arange(len(rows))[:, None]
        reached = rows == np.repeat(top, np.diff(np.append(starts, len(rows))), 0)
        place = np.minimum.reduceat(np.where(reached, number, len(rows)), starts, 0)
        best[owner[starts]] = top
        chosen[owner[starts]] = indices[np.where(np.isnan(top), starts[:, None], place)]
    return best, chosen


@by_device
def put_rows(input: Array, indices: Array, rows: int) -> Array:
    """A table of `rows` with each element of (bags, width) added at the row that `indices` of the same shape names."""
    width = input.shape[1]
    kept = indices >= 0
    flat = np.maximum(indices, 0) * width + np.arange(width)
    total = np.bincount(flat.reshape(-1), np.where(kept, input, 0).reshape(-1), rows * width)
    return total.reshape(rows, width).astype(input.dtype)


def take_rows(input: Array, indices: Array) -> Array:
    """The adjoint of `put_rows`: element by element the row that `indices` names, zero for -1."""
    taken = np.take_along_axis(input, np.maximum(indices, 0), 0)
    return np.where(indices >= 0, taken, 0).astype(input.dtype, copy=False)
