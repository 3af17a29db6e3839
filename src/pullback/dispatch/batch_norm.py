"""Batch norm as dispatch modes see it: one operator of ATen's, forward and backward, that two operations record.

PyTorch has one operator for training and evaluation; pullback has an operation for each, and updates the running statistics
beside them. So the operator is called here first, and what it gives is recorded as the operation that it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback.generated as G
from pullback.dispatch.chains import operator
from pullback.dispatch.node_classes import node_class, pull_back_alone
from pullback.dispatch.recording import record
from pullback.generated.registry import OPERATIONS
from pullback.tensor.tensor import Tensor, new_tensor


def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Show the operator, and record what it gave."""
    computed = operator(
        "native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps
    )  # fmt: skip
    result, mean, rstd = computed
    if training:
        variance = new_tensor(rstd._array)  # no rule reads it
        function, given = G.batch_norm_training, (input, weight, bias, eps)
        result, mean, rstd, _ = record(function, OPERATIONS["batch_norm_training"], given, {}, (*computed, variance))
    else:
        arguments = (input, weight, bias, running_mean, running_var, eps)
        result = record(G.batch_norm_evaluation, OPERATIONS["batch_norm_evaluation"], arguments, {}, result)
    return result, mean, rstd


def native_batch_norm_backward(
    grad: Tensor, input: Tensor, weight: Tensor | None, running_mean: Any, running_var: Any, mean: Any, rstd: Any,
    train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of the input, the weight and the bias; None for those that are not wanted."""
    operation = OPERATIONS["batch_norm_training" if train else "batch_norm_evaluation"]
    values = {
        "grad": grad, "input": input, "weight": weight, "mean": mean, "rstd": rstd, "running_mean": running_mean,
        "running_var": running_var, "eps": eps, "output_mask": output_mask,
    }  # fmt: skip
    first, second, third = pull_back_alone(node_class(operation), operation, None, values)
    return first, second, third
