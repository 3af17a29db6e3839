"""Softmaxes and layer norm, with their gradients."""

from __future__ import annotations

import math
from typing import Any

from pullback.compiling.lowered.lowering_table import floating, lowering
from pullback.compiling.lowering import Lowering, NotLowered, apply, drop_axes
from pullback.compiling.steps import Place


def _along(input: Place, dim: int) -> tuple[int, ...]:
    if not input.shape or not input.size:
        raise NotLowered("no rows")
    return (dim % len(input.shape),)


@lowering
def softmax(lower: Lowering, input: Place, dim: int) -> Place:
    floating(input)
    axes = _along(input, dim)
    powers = lower.map(lambda x, top: apply("exp", x - top), input, lower.reduce("maximum", input, axes))
    return lower.map(lambda x, total: x / total, powers, lower.reduce("sum", powers, axes))


@lowering
def softmax_backward_data(lower: Lowering, grad: Place, result: Place, dim: int) -> Place:
    floating(grad, result)
    product = lower.map(lambda g, y: g * y, grad, result)
    total = lower.reduce("sum", product, _along(result, dim))
    return lower.map(lambda p, y, t: p - y * t, product, result, total)


@lowering
def log_softmax(lower: Lowering, input: Place, dim: int) -> Place:
    floating(input)
    axes = _along(input, dim)
    shifted = lower.map(lambda x, top: x - top, input, lower.reduce("maximum", input, axes))
    powers = lower.map(lambda x: apply("exp", x), shifted)
    total = lower.map(lambda x: apply("log", x), lower.reduce("sum", powers, axes))
    return lower.map(lambda x, t: x - t, shifted, total)


@lowering
def log_softmax_backward_data(lower: Lowering, grad: Place, result: Place, dim: int) -> Place:
    floating(grad, result)
    total = lower.reduce("sum", grad, _along(result, dim))
    return lower.map(lambda g, y, t: g - apply("exp", y) * t, grad, result, total)


@lowering
def native_layer_norm(
    lower: Lowering, input: Place, normalized_shape: Any, weight: Place | None, bias: Place | None, eps: float
) -> tuple[Place, Place, Place]:
    floating(input, weight, bias)
    lead = len(input.shape) - len(normalized_shape)
    axes = tuple(range(lead, len(input.shape)))
    count = max(math.prod(input.shape[lead:]), 1)
    eps = lower.constant_number(eps)
    average = lower.map(lambda x: x / count, lower.reduce("sum", input, axes))
    centered = lower.map(lambda x, m: x - m, input, average)
    squares = lower.reduce("sum", lower.map(lambda x: x * x, centered), axes)
    # The product with zero is NaN where the variance overflowed.
    variance = lower.map(lambda s: s / count + (s / count) * 0, squares)
    rstd = lower.map(lambda v: 1 / apply("sqrt", v + eps), variance)
    result = lower.map(lambda x, r: x * r, centered, rstd)
    if weight is not None:
        result = lower.map(lambda x, w: x * w, result, weight)
    if bias is not None:
        result = lower.map(lambda x, b: x + b, result, bias)
    return result, average, rstd


@lowering
def layer_norm_back(
    lower: Lowering, grad: Place, input: Place, mean: Place, rstd: Place, weight: Place | None, normalized_shape: Any,
    eps: float,
) -> tuple[Place, Place | None, Place]:  # fmt: skip
    floating(grad, input, mean, rstd, weight)
    lead = len(input.shape) - len(normalized_shape)
    axes, rows = tuple(range(lead, len(input.shape))), tuple(range(lead))
    count = max(math.prod(input.shape[lead:]), 1)
    normal = lower.map(lambda x, m, r: (x - m) * r, input, mean, rstd)
    scaled = grad if weight is None else lower.map(lambda g, w: g * w, grad, weight)
    along = lower.reduce("sum", lower.map(lambda h, n: h * n, scaled, normal), axes)
    level = lower.reduce("sum", scaled, axes)
    to_input = lower.map(
        lambda h, n, a, s, r: (h - s / count - n * (a / count)) * r, scaled, normal, along, level, rstd
    )
    to_weight = None
    if weight is not None:
        again = lower.map(lambda g, x, m, r: g * ((x - m) * r), grad, input, mean, rstd)
        to_weight = drop_axes(lower.reduce("sum", again, rows), rows) if rows else again
    to_bias = drop_axes(lower.reduce("sum", grad, rows), rows) if rows else grad
    return to_input, to_weight, to_bias
