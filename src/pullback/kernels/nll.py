"""The negative log likelihood of classes, and its adjoint."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.checks.elements import position_out_of_range
from pullback.kernels.accumulation import accurate_sum, add_up, widened
from pullback.native import native
from pullback.typing import Array, Shape


@native
def nll_loss(
    input: Array, target: Array, weight: Array | None = None, reduction: int = 1, ignore_index: int = -100
) -> Array:
    """Minus the input at the target's class, weighted; `input` is (C,), (N, C) or (N, C, d1, ...)."""
    axis = 0 if input.ndim == 1 else 1
    if weight is None and input.ndim == 2 and _all_count(target, input.shape[1], ignore_index):
        return _plain_loss(input, target, reduction)
    place, factor = _places_and_factors(input.shape[axis], target, weight, input.dtype, ignore_index)
    picked = np.squeeze(np.take_along_axis(input, np.expand_dims(place, axis), axis), axis)
    values = np.asarray(widened(picked) * -widened(factor))
    if reduction == 0:
        return cast_array(values, input.dtype)
    total = accurate_sum(values, tuple(range(values.ndim)), False)
    if reduction == 1:
        total = total / accurate_sum(widened(factor), tuple(range(factor.ndim)), False)
    return cast_array(np.asarray(total), input.dtype)


def _all_count(target: Array, classes: int, ignore_index: int) -> bool:
    """Whether every target is a class and none is ignored."""
    if target.size == 0:
        return False
    low, high = np.minimum.reduce(target), np.maximum.reduce(target)
    return bool(low >= 0 and high < classes and not (low <= ignore_index <= high and (target == ignore_index).any()))


def _plain_loss(input: Array, target: Array, reduction: int) -> Array:
    """The loss without weights."""
    picked = widened(input[np.arange(target.size), target])
    if reduction == 0:
        return cast_array(-picked, input.dtype)
    total = -add_up(picked, 0)
    return cast_array(total / picked.dtype.type(target.size) if reduction == 1 else total, input.dtype)


@native
def nll_loss2d(
    input: Array, target: Array, weight: Array | None = None, reduction: int = 1, ignore_index: int = -100
) -> Array:
    """nll_loss of images, under its own name as in PyTorch."""
    return nll_loss(input, target, weight, reduction, ignore_index)


@native
def nll_loss_grad(
    input: Array, target: Array, weight: Array | None, shape: Shape, reduction: int, ignore_index: int
) -> Array:
    """The adjoint of nll_loss: the gradient `input` spread to the targets' classes."""
    axis = 0 if len(shape) == 1 else 1
    if weight is None and len(shape) == 2 and _all_count(target, shape[1], ignore_index):
        result = np.zeros(shape, input.dtype)
        result[np.arange(target.size), target] = (
            np.true_divide(-input, target.size, dtype=input.dtype) if reduction == 1 else -input
        )
        return result
    place, factor = _places_and_factors(shape[axis], target, weight, input.dtype, ignore_index)
    values = -input * factor
    if reduction == 1:
        values = values / accurate_sum(widened(factor), tuple(range(factor.ndim)), False).astype(input.dtype)
    result = np.zeros(shape, input.dtype)
    np.put_along_axis(result, np.expand_dims(place, axis), np.expand_dims(values, axis), axis)
    return result


def _places_and_factors(
    classes: int,
    target: Array,
    weight: Array | None,
    dtype: np.dtype,
    ignore_index: int,
) -> tuple[Array, Array]:
    """The class of each target (0 where ignored) and the weight of its loss (0 where ignored)."""
    counted = np.asarray(target != ignore_index)
    place = np.where(counted, target, 0).astype(np.int64, copy=False)
    wrong = (place < 0) | (place >= classes)
    if np.any(wrong):
        raise position_out_of_range(
            f"Target {int(np.ravel(place[wrong])[0])} is out of bounds. There are {classes} classes, from 0."
        )
    if weight is None:
        return place, counted.astype(dtype)
    return place, np.where(counted, weight[place], 0).astype(dtype)
