"""Slopes of activation functions that need more than a line."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Scalar


def small_sigmoid(input: Any) -> Any:
    """The sigmoid, with all digits where it is tiny: there 1 / (1 + exp(-x)) overflows. From 40 on it is 1."""
    growth = F.exp(F.clamp_max(input, 40))
    return growth / (growth + 1)


@declare(fresh=True)
def silu_grad(grad: Any, input: Any) -> Any:
    """The gradient of x * sigmoid(x)."""
    gate = F.sigmoid(input)
    return F.exactly(grad * gate * (input * (1 - gate) + 1), F.silu_backward(grad, input))


@declare(fresh=True)
def mish_grad(grad: Any, input: Any) -> Any:
    """The gradient of x * tanh(softplus(x))."""
    squashed = F.tanh(F.log1p(F.exp(input)))
    slope = squashed + input * F.sigmoid(input) * (1 - squashed * squashed)
    return F.exactly(grad * slope, F.mish_backward(grad, input))


def silu_bend(input: Any) -> Any:
    """The second derivative of x * sigmoid(x), with all digits on both sides."""
    gate, rest = F.small_sigmoid(input), F.small_sigmoid(-input)
    return gate * rest * (input * (rest - gate) + 2)


def mish_bend(input: Any) -> Any:
    """The second derivative of x * tanh(softplus(x)).

    With t = tanh(softplus(x)) and s = sigmoid(x) it is (1 - t^2) s (2 + x (1 - s) - 2 x t s).
    """
    squashed = F.tanh(F.log1p(F.exp(input)))
    gate = F.small_sigmoid(input)
    return (1 - squashed * squashed) * gate * (input * (1 - gate - squashed * gate * 2) + 2)


def sigmoid_slope(input: Any) -> Any:
    """The derivative of the sigmoid, with all digits on both sides."""
    return F.small_sigmoid(input) * F.small_sigmoid(-input)


def softplus_grad_again(grad: Any, input: Any, beta: Scalar, threshold: Scalar) -> Any:
    """The second derivative of softplus, times `grad`."""
    return F.where(input * beta > threshold, 0, grad * F.sigmoid_slope(input * beta) * beta)


def gelu_bend(input: Any) -> Any:
    """The second derivative of x * ndtr(x): density(x) * (2 - x^2)."""
    square = input * input
    return F.exp(square * -0.5) * (2 - square) * (1 / math.sqrt(2 * math.pi))


def gelu_tanh_bend(input: Any) -> Any:
    """The second derivative of 0.5 x (1 + tanh(u)) with u = k (x + c x^3).

    With t = tanh(u) it is (1 - t^2) (u' + 0.5 x (u'' - 2 t u'^2)).
    """
    square = input * input
    squashed = F.tanh((input + square * input * 0.044715) * math.sqrt(2 / math.pi))
    slope = (1 + square * (3 * 0.044715)) * math.sqrt(2 / math.pi)
    bend = input * (6 * 0.044715 * math.sqrt(2 / math.pi))
    return (1 - squashed * squashed) * (slope + input * (bend - squashed * slope * slope * 2) * 0.5)


def elu_grad_again(grad: Any, input: Any, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Any:
    """The second derivative of elu, times `grad`; at zero it is zero."""
    below = F.exp(F.keep_where(input < 0, input) * input_scale) * (alpha * scale * input_scale * input_scale)
    return F.keep_where(input < 0, grad * below)


def glu_grad(grad: Any, input: Any, dim: int) -> Any:
    """The gradients of both halves of a gated input, joined."""
    size = input.shape[dim] // 2
    first, second = F.slice_view(input, dim, 0, size, 1), F.slice_view(input, dim, size, 2 * size, 1)
    gate = F.sigmoid(second)
    return F.cat([grad * gate, F.sigmoid_backward(grad * first, gate)], dim)


def logit_grad(grad: Any, input: Any, eps: float | None) -> Any:
    """The gradient of logit: nan outside (0, 1), or zero outside of the clamped range."""
    product = input * (1 - input)
    slope = grad / F.exactly(product, product + 0)  # a zero of either sign is one from within: the slope is +inf
    if eps is None:
        return F.where(F.logical_and(input >= 0, input <= 1), slope, math.nan)
    return F.keep_where(F.logical_and(input >= eps, input <= 1 - eps), slope)
