"""Gradients of normalizations as operations, for differentiating them again. Statistics are computed from the input."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Shape


def in_dtype_of(value: Any, other: Any) -> Any:
    """A tensor in the dtype of another one: 16 bits in that of the parameters they were normalized with, and back."""
    return value if other is None or value.dtype is other.dtype else F.to_dtype(value, other.dtype)


@declare(fresh=True)
def layer_norm_back(
    grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, normalized_shape: Shape, eps: float
) -> Any:
    """The gradients of a layer norm with respect to its input, its weight and its bias."""
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    normalized, scale = F.normalized_over(input, dims, eps)
    scaled = grad if weight is None else F.mul(grad, weight)
    to_weight = None if weight is None else F.sum_to(F.mul(grad, normalized), normalized_shape)
    to_bias = F.depending_on(F.sum_to(grad, normalized_shape), input, "NativeLayerNormBackwardBackward0")
    return F.normalization_back(scaled, normalized, scale, dims), to_weight, to_bias


def normalized_over(input: Any, dims: Shape, eps: float) -> Any:
    """The input with mean 0 and variance 1 over `dims`, and what it was multiplied by."""
    centered = F.sub(input, F.mean(input, dims, True))
    scale = F.rsqrt(F.add(F.mean(F.mul(centered, centered), dims, True), eps))
    return F.mul(centered, scale), scale


def normalization_back(grad: Any, normalized: Any, scale: Any, dims: Shape) -> Any:
    """The gradient with respect to what was normalized over `dims`."""
    along = F.mul(normalized, F.mean(F.mul(grad, normalized), dims, True))
    return F.mul(scale, F.sub(F.sub(grad, F.mean(grad, dims, True)), along))


def as_channels(values: Any, ndim: int) -> Any:
    """A vector of channels shaped to broadcast against (N, C, ...)."""
    return F.reshape(values, (-1,) + (1,) * (ndim - 2))


@declare(fresh=True)
def batch_norm_training_back(grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, eps: float) -> Any:
    """The gradients of a batch norm in training with respect to its input, its weight and its bias."""
    dims = (0, *range(2, input.ndim))
    normalized, scale = F.normalized_over(input, dims, eps)
    scaled = grad if weight is None else F.mul(grad, F.as_channels(weight, grad.ndim))
    to_weight = F.sum_over_channels(F.mul(grad, normalized))
    to_bias = F.depending_on(F.sum_over_channels(grad), input, "NativeBatchNormBackwardBackward0")
    return F.normalization_back(scaled, normalized, scale, dims), to_weight, to_bias


def batch_norm_evaluation_back(grad: Any, weight: Any, running_var: Any, eps: float) -> Any:
    """The gradient of a batch norm by given statistics with respect to its input."""
    factor = F.rsqrt(F.add(running_var, eps))
    if weight is not None:
        factor = F.mul(factor, weight)
    return F.mul(grad, F.to_dtype(F.as_channels(factor, grad.ndim), grad.dtype))


def batch_norm_evaluation_weight_back(
    grad: Any, input: Any, dtype: Any, running_mean: Any, running_var: Any, eps: float
) -> Any:
    """The gradient of a batch norm by given statistics with respect to its weight."""
    factor = F.as_channels(F.rsqrt(F.add(running_var, eps)), grad.ndim)
    normalized = F.mul(F.sub(input, F.as_channels(running_mean, grad.ndim)), factor)
    return F.to_dtype(F.sum_over_channels(F.mul(grad, normalized)), dtype)


@declare(fresh=True)
def group_norm_back(grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, group: int, eps: float) -> Any:
    """The gradients of a group norm with respect to its input, its weight and its bias."""
    shape = tuple(input.shape)
    grouped = (shape[0], group, -1) if input.shape[0] else (0, group, shape[1] // group)
    normalized, scale = F.normalized_over(F.reshape(input, grouped), (2,), eps)
    scaled = grad if weight is None else F.mul(grad, F.as_channels(weight, grad.ndim))
    to_input = F.normalization_back(F.reshape(scaled, grouped), normalized, scale, (2,))
    to_weight = F.sum_over_channels(F.mul(grad, F.reshape(normalized, shape)))
    return F.reshape(to_input, shape), to_weight, F.sum_over_channels(grad)


def rms_norm_back(grad: Any, input: Any, normalized_shape: Shape, weight: Any, eps: float | None) -> Any:
    """The gradients of an RMS norm with respect to its input and its weight."""
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    bound = F.epsilon_of(input) if eps is None else eps
    scale = F.rsqrt(F.add(F.mean(F.mul(input, input), dims, True), bound))
    normalized = F.mul(input, scale)
    scaled = grad if weight is None else F.mul(grad, weight)
    to_weight = None if weight is None else F.sum_to(F.mul(grad, normalized), normalized_shape)
    along = F.mul(normalized, F.mean(F.mul(scaled, normalized), dims, True))
    return F.mul(scale, F.sub(scaled, along)), to_weight


def epsilon_of(input: Any) -> float:
    """The spacing of numbers in the dtype that norms are computed in."""
    return 2.0**-52 if input.dtype.itemsize == 8 else 2.0**-23


def weight_norm_back(grad: Any, v: Any, g: Any, norms: Any, dim: int) -> Any:
    """The gradients of `weight_norm_interface` with respect to the directions and to the norms."""
    dims = tuple([d for d in range(v.ndim) if d != dim % v.ndim])
    norm = F.linalg_vector_norm(v, 2, dims, True)
    unit = F.div(v, norm)
    along = F.sum(F.mul(grad, unit), dims, True)
    return F.mul(F.sub(grad, F.mul(unit, along)), F.div(g, norm)), along
