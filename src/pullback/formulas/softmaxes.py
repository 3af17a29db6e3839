"""Gradients of softmax, its logarithm, and logsumexp."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.typing import Dims


def softmax_grad_again(grad: Any, output_grad: Any, output: Any, dim: int) -> Any:
    """The gradient of y (g - sum(g y)) with respect to y."""
    centered = output_grad - F.sum(output_grad * output, (dim,), True)
    return grad * centered - output_grad * F.sum(grad * output, (dim,), True)


def softmax_grad_push(output_grad: Any, output: Any, output_tangent: Any, dim: int) -> Any:
    """The tangent of y (g - sum(g y)) along that of y."""
    centered = output_grad - F.sum(output_grad * output, (dim,), True)
    return output_tangent * centered - output * F.sum(output_grad * output_tangent, (dim,), True)


def log_softmax_push(input_tangent: Any, result: Any, dim: int) -> Any:
    """The tangent of a log_softmax."""
    return input_tangent - F.sum(F.exp(result) * input_tangent, (dim,), True)


def logsumexp_grad(grad: Any, input: Any, result: Any, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a logsumexp: the softmax over the reduced dimensions."""
    result = F.restore_reduced(result, tuple(input.shape), dim, keepdim)
    grad = F.restore_reduced(grad, tuple(input.shape), dim, keepdim)
    return grad * F.conj(F.exp(input - result))


def logsumexp_push(input: Any, input_tangent: Any, result: Any, dim: Dims, keepdim: bool) -> Any:
    """The tangent of a logsumexp."""
    weights = F.exp(input - F.restore_reduced(result, tuple(input.shape), dim, keepdim))
    return F.sum(input_tangent * weights, dim, keepdim)
