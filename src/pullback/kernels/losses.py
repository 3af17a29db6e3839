"""Losses that PyTorch computes in one operation. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backend.array_module import cast_array, is_at_hand
from pullback.checks import checked
from pullback.checks.elements import value_out_of_range
from pullback.kernels.accumulation import accurate_sum, widened
from pullback.kernels.broadcasting import sum_to
from pullback.native import by_device, native
from pullback.typing import Array


@by_device
def reduce_loss(values: Array, reduction: int) -> Any:
    """The losses themselves, their mean or their sum."""
    if reduction == 0:
        return values
    total = accurate_sum(values, tuple(range(values.ndim)), False)
    return total if reduction == 2 else np.true_divide(total, values.size, dtype=values.dtype)


@native
@checked
def mse_loss(input: Array, target: Array, reduction: int = 1) -> Array:
    """The squared distance."""
    distance = np.asarray(widened(input) - widened(target))
    return cast_array(reduce_loss(np.multiply(distance, distance, out=distance), reduction), input.dtype)


@native
@checked
def smooth_l1_loss(input: Array, target: Array, reduction: int = 1, beta: float = 1.0) -> Array:
    """Half the squared distance over `beta` where it is below `beta`, the distance less half of `beta` elsewhere."""
    reduced = reduce_loss(_rounded_distance(input, target, beta), reduction)
    return cast_array(np.asarray(reduced / beta), input.dtype)


def _rounded_distance(input: Array, target: Array, limit: float) -> Array:
    """d^2 / 2 for distances d up to `limit`, limit (d - limit / 2) beyond.

    With c = min(d, limit) both are c (d - c / 2).
    """
    distance = np.asarray(widened(input) - widened(target))
    np.abs(distance, out=distance)
    short = np.minimum(distance, limit)
    distance -= 0.5 * short
    distance *= short
    return distance


@native
@checked
def huber_loss(input: Array, target: Array, reduction: int = 1, delta: float = 1.0) -> Array:
    """As smooth_l1_loss, times `delta`."""
    return cast_array(reduce_loss(_rounded_distance(input, target, delta), reduction), input.dtype)


@native
def soft_margin_loss(input: Array, target: Array, reduction: int = 1) -> Array:
    """log(1 + exp(-target * input))."""
    power = -widened(target) * widened(input)
    values = np.maximum(power, 0) + np.log1p(np.exp(-np.abs(power)))
    return cast_array(reduce_loss(values, reduction), input.dtype)


@native
@checked
def binary_cross_entropy(input: Array, target: Array, weight: Array | None = None, reduction: int = 1) -> Array:
    """-(target log(input) + (1 - target) log(1 - input)), each logarithm kept above -100."""
    if input.size and is_at_hand(input) and not (np.all(input >= 0) and np.all(input <= 1)):
        outside = input[~((input >= 0) & (input <= 1))]
        raise value_out_of_range(
            f"all elements of input should be between 0 and 1, as probabilities are: one is {float(outside[0]):g}. "
            "binary_cross_entropy_with_logits takes numbers of any size."
        )
    probability, wanted = widened(input), widened(target)
    values = (wanted - 1) * np.maximum(np.log1p(-probability), -100) - wanted * np.maximum(np.log(probability), -100)
    if weight is not None:
        values = values * widened(weight)
    return cast_array(reduce_loss(np.asarray(values), reduction), input.dtype)


@native
def binary_cross_entropy_with_logits(
    input: Array, target: Array, weight: Array | None = None, pos_weight: Array | None = None, reduction: int = 1
) -> Array:
    """binary_cross_entropy of the sigmoid of `input`, computed without overflow."""
    logit, wanted = widened(input), widened(target)
    tail = np.log1p(np.exp(-np.abs(logit))) - np.minimum(logit, 0)
    if pos_weight is not None:
        tail = tail * ((widened(pos_weight) - 1) * wanted + 1)
    values = (1 - wanted) * logit + tail
    if weight is not None:
        values = values * widened(weight)
    return cast_array(reduce_loss(np.asarray(values), reduction), input.dtype)


def mse_loss_again(
    wanted: tuple[bool, ...], grads: Sequence[Array], grad: Array, input: Array, target: Array, reduction: int
) -> tuple[Array | None, ...]:
    """The gradients of `mse_loss_grad`: of the gradient that it was given, of the input and of the target."""
    scaled = grads[0] * (2.0 / max(grads[0].size, 1) if reduction == 1 else 2.0)
    to_grad = sum_to(np.asarray((input - target) * scaled), grad.shape) if wanted[0] else None
    if not (wanted[1] or wanted[2]):
        return to_grad, None, None
    to_input = np.asarray(scaled * grad)
    return to_grad, to_input, -to_input if wanted[2] else None


def smooth_l1_loss_again(
    wanted: tuple[bool, ...],
    grads: Sequence[Array],
    grad: Array,
    input: Array,
    target: Array,
    reduction: int,
    beta: float,
) -> tuple[Array | None, ...]:
    """The gradients of the gradient of smooth_l1_loss."""
    return _clamped_again(wanted, grads, grad, input, target, reduction, 1 / beta, 1.0)


def huber_loss_again(
    wanted: tuple[bool, ...],
    grads: Sequence[Array],
    grad: Array,
    input: Array,
    target: Array,
    reduction: int,
    delta: float,
) -> tuple[Array | None, ...]:
    """The gradients of the gradient of huber_loss."""
    return _clamped_again(wanted, grads, grad, input, target, reduction, 1.0, delta)


def _clamped_again(
    wanted: tuple[bool, ...], grads: Sequence[Array], grad: Array, input: Array, target: Array, reduction: int,
    factor: float, limit: float,
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of `clamped_distance_grad`."""
    weighted = grads[0] * (1 / max(grads[0].size, 1)) if reduction == 1 else grads[0]
    scaled = np.asarray((input - target) * factor)
    is_within = np.abs(scaled) < limit
    to_grad = to_input = None
    if wanted[0]:
        distance = np.where(is_within, scaled, np.sign(scaled) * scaled.dtype.type(limit))
        to_grad = sum_to(np.asarray(weighted * distance), grad.shape)
    if wanted[1] or wanted[2]:
        to_input = np.where(is_within, weighted * grad * factor, scaled.dtype.type(0))
    return to_grad, to_input, -to_input if wanted[2] and to_input is not None else None
