"""Gradients of losses that PyTorch computes in one operation."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.native import compiled_on_arrays


def loss_weight(grad: Any, count: int, reduction: int) -> Any:
    """The gradient of one loss, given that of the reduced losses."""
    return grad / max(count, 1) if reduction == 1 else grad


def _count_of(tensor: Any) -> int:
    return math.prod(tuple(tensor.shape))


@compiled_on_arrays
@declare(fresh=True)
def mse_loss_grad(grad: Any, input: Any, target: Any, reduction: int) -> Any:
    """The gradient of mse_loss with respect to its input."""
    return F.loss_weight(grad, _count_of(input), reduction) * (input - target) * 2


@compiled_on_arrays
@declare(fresh=True)
def clamped_distance_grad(grad: Any, input: Any, target: Any, reduction: int, factor: float, limit: float) -> Any:
    """The gradient of smooth_l1_loss and huber_loss: the distance, scaled and clamped."""
    scaled = (input - target) * factor
    distance = F.where(F.abs(scaled) >= limit, F.sign(scaled) * limit, scaled)
    return F.to_dtype(F.loss_weight(grad, _count_of(input), reduction) * distance, input.dtype)


@compiled_on_arrays
@declare(fresh=True)
def soft_margin_loss_grad(grad: Any, input: Any, target: Any, reduction: int) -> Any:
    """The gradient of soft_margin_loss."""
    return F.loss_weight(grad, _count_of(input), reduction) * -target * F.sigmoid(-target * input)


@compiled_on_arrays
@declare(fresh=True)
def binary_cross_entropy_grad(grad: Any, input: Any, target: Any, weight: Any | None, reduction: int) -> Any:
    """The gradient of binary_cross_entropy with respect to its input; the divisor is kept from zero."""
    divisor = F.clamp_min(input * (1 - input), 1e-12)
    grad = F.loss_weight(grad, _count_of(input), reduction) * (input - target) / divisor
    return grad if weight is None else grad * weight


def binary_cross_entropy_grad_target(grad: Any, input: Any, weight: Any, reduction: int) -> Any:
    """The gradient of binary_cross_entropy with respect to its target."""
    grad = -F.logit(input, None) * grad
    grad = grad if weight is None else grad * weight
    return F.loss_weight(grad, _count_of(input), reduction)


@compiled_on_arrays
@declare(fresh=True)
def logits_grad(grad: Any, input: Any, target: Any, weight: Any | None, pos_weight: Any | None, reduction: int) -> Any:
    """The gradient of binary_cross_entropy_with_logits with respect to its input."""
    if pos_weight is None:
        grad = (F.sigmoid(input) - target) * grad
    else:
        positive = pos_weight * target
        grad = ((positive + 1 - target) * F.sigmoid(input) - positive) * grad
    grad = grad if weight is None else grad * weight
    return F.loss_weight(grad, _count_of(input), reduction)


def logits_grad_target(grad: Any, input: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """The gradient of binary_cross_entropy_with_logits with respect to its target."""
    grad = -input * grad if pos_weight is None else ((pos_weight - 1) * F.softplus(-input) - input) * grad
    grad = grad if weight is None else grad * weight
    return F.loss_weight(grad, _count_of(input), reduction)


def multi_margin_loss_grad(
    grad: Any, input: Any, target: Any, p: int, margin: float, weight: Any, reduction: int
) -> Any:
    """The gradient of multi_margin_loss: that of each class's slack, less their sum at the target."""
    batch = 1 if input.ndim < 2 else input.shape[0]
    grad = F.loss_weight(grad, batch, reduction)
    shape = tuple(input.shape)
    rows = F.reshape(input, (batch, shape[-1] if shape else 1))
    places = F.reshape(target, (batch, 1))
    slopes = F.multi_margin_weights(input, target, p, margin, weight)
    if p == 2:
        slopes = slopes * (rows - F.take_along(rows, places, 1) + margin) * 2
    slopes = slopes - F.put_along(F.sum(slopes, (1,), True), places, tuple(slopes.shape), 1)
    return F.to_dtype(F.reshape(F.reshape(grad, (-1, 1)) * slopes, shape), input.dtype)


def multilabel_margin_loss_grad(grad: Any, input: Any, target: Any, reduction: int) -> Any:
    """The gradient of multilabel_margin_loss."""
    batch = 1 if input.ndim < 2 else input.shape[0]
    grad = F.loss_weight(grad, batch, reduction)
    weights = F.multilabel_margin_weights(input, target)
    classes = input.shape[-1] if input.ndim else 1
    return F.reshape(F.reshape(grad, (-1, 1)) * F.reshape(weights, (batch, classes)), tuple(input.shape))
