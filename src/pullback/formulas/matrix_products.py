"""Gradients of matrix products, in their own terms, so that they can be differentiated again."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.kernels.index_arrays import strided_positions
from pullback.typing import Shape


@declare(fresh=True)
def matmul_grad_input(grad: Any, input_shape: Shape, other: Any) -> Any:
    """The gradient of `input @ other` with respect to `input`."""
    other = F.conj(other)
    if other.ndim == 1:
        return F.sum_to(F.mul(F.unsqueeze(grad, grad.ndim), other), input_shape)
    flipped = F.t(other) if other.ndim == 2 else F.transpose(other, -1, -2)
    if len(input_shape) == 1:
        return F.sum_to(F.squeeze_dim(F.matmul(F.unsqueeze(grad, grad.ndim - 1), flipped), -2), input_shape)
    return F.sum_to(F.matmul(grad, flipped), input_shape)


@declare(fresh=True)
def matmul_grad_other(grad: Any, input: Any, other_shape: Shape) -> Any:
    """The gradient of `input @ other` with respect to `other`."""
    input = F.conj(input)
    if len(other_shape) == 1:
        return F.sum_to(F.mul(F.unsqueeze(grad, grad.ndim), input), other_shape)
    if input.ndim == 1:
        return F.sum_to(F.mul(F.unsqueeze(input, 1), F.unsqueeze(grad, grad.ndim - 1)), other_shape)
    return F.sum_to(F.matmul(F.transpose(input, -1, -2), grad), other_shape)


def matmul(input: Any, other: Any) -> Any:
    """The matrix product of tensors of any number of dimensions."""
    if input.ndim == 2 and other.ndim == 2:
        return F.mm(input, other)
    if input.ndim == 1 and other.ndim == 1:
        return F.dot(input, other)
    if input.ndim == 2 and other.ndim == 1:
        return F.mv(input, other)
    return F.matmul_batched(input, other)


@declare(fresh=True)
def linear_grad_input(grad: Any, weight: Any) -> Any:
    """The gradient of a linear layer with respect to its input."""
    return F.matmul(grad, F.conj(weight))


@declare(fresh=True)
def linear_grad_weight(grad: Any, input: Any) -> Any:
    """The gradient of a linear layer with respect to its weight."""
    if grad.ndim == 1:
        return F.outer(grad, F.conj(input))
    if grad.ndim > 2:
        rows = math.prod(grad.shape[:-1])
        grad = F.reshape(grad, (rows, grad.shape[-1]))
        input = F.reshape(input, (rows, input.shape[-1]))
    return F.mm(F.t(grad), F.conj(input))


@declare(fresh=True)
def linear_grad_bias(grad: Any) -> Any:
    """The gradient of a linear layer with respect to its bias."""
    return grad if grad.ndim == 1 else F.sum(grad, tuple(range(grad.ndim - 1)), False)


@declare(twin="recorded")
def bias_grad(grad: Any, shape: Shape) -> Any:
    """The gradient of what is added to a product of matrices."""
    return F.sum_to(grad, shape)


@declare(twin="passes")
def trace_back(grad: Any, shape: Shape) -> Any:
    """The gradient of the trace: `grad` on the diagonal."""
    rows, columns = shape
    zeros = F.zeros_in_shape(grad, (rows * columns,))
    places = F.as_positions(strided_positions((min(shape),), (columns + 1,), 0), grad)
    return F.reshape(F.index_fill_tensor(zeros, 0, places, grad), shape)
