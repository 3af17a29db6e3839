"""Losses and their gradients."""

from __future__ import annotations

from pullback.compiling.lowered.lowering_table import floating, lowering
from pullback.compiling.lowered.reductions import sum
from pullback.compiling.lowering import Lowering, NotLowered, apply
from pullback.compiling.steps import Place


def _loss(lower: Lowering, values: Place, reduction: int) -> Place:
    if reduction == 0:
        return values
    total: Place = sum(lower, values)
    return total if reduction == 2 else lower.map(lambda x: x / values.size, total)


@lowering
def mse_loss(lower: Lowering, input: Place, target: Place, reduction: int = 1) -> Place:
    floating(input, target)
    return _loss(lower, lower.map(lambda d: d * d, lower.map(lambda x, y: x - y, input, target)), reduction)


@lowering
def binary_cross_entropy_with_logits(
    lower: Lowering, input: Place, target: Place, weight: Place | None = None, pos_weight: Place | None = None,
    reduction: int = 1,
) -> Place:  # fmt: skip
    if weight is not None or pos_weight is not None:
        raise NotLowered("weights")
    floating(input, target)
    values = lower.map(
        lambda x, y: (1 - y) * x + (apply("log1p", apply("exp", -apply("abs", x))) - apply("minimum", x, 0)),
        input,
        target,
    )
    return _loss(lower, values, reduction)
