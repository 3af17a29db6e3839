"""Losses that ask for a margin between the scores of classes."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import cast_array, is_at_hand
from pullback.checks import checked
from pullback.checks.elements import position_out_of_range
from pullback.kernels.accumulation import add_up, widened
from pullback.kernels.index_arrays import check_index
from pullback.kernels.losses import reduce_loss
from pullback.native import by_device
from pullback.typing import Array


@by_device
@checked
def multi_margin_loss(
    input: Array, target: Array, p: int = 1, margin: float = 1.0, weight: Array | None = None, reduction: int = 1
) -> Array:
    """The slack by which other classes come within `margin` of the target's, to the power `p`, over the classes."""
    rows, places = _rows_and_places(input, target)
    slack = rows - np.take_along_axis(rows, places, 1) + margin
    weights = multi_margin_weights(input, target, p, margin, weight)
    losses = add_up(
        weights * np.where(weights != 0, slack, np.zeros_like(slack)) ** p, 1
    )  # infinite scores leave no NaN
    if reduction == 0:
        return cast_array(losses.reshape(target.shape), input.dtype)
    return cast_array(np.asarray(reduce_loss(losses, reduction)), input.dtype)


@by_device
def multi_margin_weights(input: Array, target: Array, p: int, margin: float, weight: Array | None) -> Array:
    """What the slack of each class counts: nothing where there is none, and at the target; a matrix."""
    rows, places = _rows_and_places(input, target)
    picked = np.take_along_axis(rows, places, 1)
    weights = (rows - picked + margin > 0).astype(rows.dtype) / rows.dtype.type(rows.shape[1])
    np.put_along_axis(weights, places, 0, 1)
    return weights if weight is None else weights * widened(weight)[places]


def _rows_and_places(input: Array, target: Array) -> tuple[Array, Array]:
    rows = widened(input).reshape(1, -1) if input.ndim < 2 else widened(input)
    places: Array = np.reshape(target, (-1, 1))
    if not is_at_hand(places):
        check_index(places, rows.shape[1], None)
    elif np.any((places < 0) | (places >= rows.shape[1])):
        raise position_out_of_range("target out of range", RuntimeError)
    return rows, places


@by_device
@checked
def multilabel_margin_loss(input: Array, target: Array, reduction: int = 1) -> Array:
    """The slack by which classes outside of the target come within 1 of those inside, over the classes.

    A row of `target` names classes up to its first -1.
    """
    rows, slack, times = _pairwise_slack(input, target)
    losses = add_up(slack * times, (1, 2)) / rows.shape[1]
    if reduction == 0:
        return cast_array(losses.reshape(input.shape[:-1]), input.dtype)
    return cast_array(np.asarray(reduce_loss(losses, reduction)), input.dtype)


@by_device
def multilabel_margin_weights(input: Array, target: Array) -> Array:
    """How much each class's score moves the loss of its sample."""
    rows, slack, times = _pairwise_slack(input, target)
    active = (slack > 0) * times
    weights = (add_up(active, 1) - add_up(active, 2)) / rows.shape[1]
    return weights.reshape(input.shape).astype(input.dtype)


def _pairwise_slack(input: Array, target: Array) -> tuple[Array, Array, Array]:
    """Scores as rows; max(0, 1 - x[j] + x[i]) at [:, j, i] for j in the target and i not in it; how often j is named."""
    rows = widened(input).reshape(-1, input.shape[-1] if input.ndim else 1)
    named = np.reshape(target, rows.shape)
    listed = np.logical_and.accumulate(named >= 0, axis=1)
    if not is_at_hand(named):
        check_index(named + 1, rows.shape[1] + 1, None)
    elif np.any((named >= rows.shape[1]) | (named < -1)):
        raise position_out_of_range("argument #2 'target' is out of range", RuntimeError)
    times = np.sum((named[:, :, None] == np.arange(rows.shape[1])) & listed[:, :, None], 1)
    inside = times > 0
    slack = np.maximum(1 - rows[:, :, None] + rows[:, None, :], 0)
    return rows, slack * (inside[:, :, None] & ~inside[:, None, :]), times[:, :, None].astype(rows.dtype)
