"""The gradients of activation functions: operations of their own, so that every path computes them with one kernel."""

from __future__ import annotations

import math

import numpy as np

from pullback.kernels.dtype_support import _in_float32
from pullback.kernels.selection import _select, drop_where, keep_where
from pullback.kernels.special import erf
from pullback.native import native
from pullback.typing import Array, Scalar

_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_DENSITY = 1 / math.sqrt(2 * math.pi)


@native
@_in_float32
def tanh_backward(output_grad: Array, output: Array) -> Array:
    """The gradient of tanh."""
    return output_grad * (1 - output * output).conjugate()


@native
@_in_float32
def sigmoid_backward(output_grad: Array, output: Array) -> Array:
    """The gradient of sigmoid."""
    return output_grad * ((1 - output) * output).conjugate()


@native
@_in_float32
def log_sigmoid_backward(output_grad: Array, input: Array) -> Array:
    """The gradient of logsigmoid."""
    return output_grad * _small_sigmoid(-input)


def _small_sigmoid(input: Array) -> Array:
    """The sigmoid, with all digits where it is tiny: there 1 / (1 + exp(-x)) overflows. From 40 on it is 1."""
    growth = np.exp(np.minimum(input, 40))
    return growth / (growth + 1)


@native
@_in_float32
def softplus_backward(output_grad: Array, input: Array, beta: Scalar, threshold: Scalar) -> Array:
    """The gradient of softplus."""
    scaled = input * beta
    return _select(scaled > threshold, output_grad, output_grad * _small_sigmoid(scaled))


@native
@_in_float32
def silu_backward(output_grad: Array, input: Array) -> Array:
    """The gradient of silu."""
    gate = 1 / (1 + np.exp(-input))
    return output_grad * gate * (input * (1 - gate) + 1)


@native
@_in_float32
def mish_backward(output_grad: Array, input: Array) -> Array:
    """The gradient of mish."""
    squashed = np.tanh(np.log1p(np.exp(input)))
    return output_grad * (squashed + input * (1 / (1 + np.exp(-input))) * (1 - squashed * squashed))


@native
def silu_grad(grad: Array, input: Array) -> Array:
    """As `silu_backward`; on Tensors PyTorch's chain is recorded."""
    return silu_backward(grad, input)


@native
def mish_grad(grad: Array, input: Array) -> Array:
    """As `mish_backward`; on Tensors PyTorch's chain is recorded."""
    return mish_backward(grad, input)


@native
@_in_float32
def gelu_backward(output_grad: Array, input: Array, approximate: str) -> Array:
    """The gradient of gelu: ndtr(x) + x * density(x), or that of 0.5 x (1 + tanh(k (x + c x^3)))."""
    if approximate == "none":
        cumulative = (1 + erf(input * _SQRT_HALF)) * 0.5
        density = np.exp(input * input * -0.5) * _DENSITY
        return output_grad * (cumulative + input * density)
    square = input * input
    squashed = np.tanh((input + square * input * _CUBIC) * _SQRT_TWO_OVER_PI)
    inner = (1 + square * (3 * _CUBIC)) * _SQRT_TWO_OVER_PI
    return output_grad * ((1 + squashed) * 0.5 + input * (1 - squashed * squashed) * inner * 0.5)


@native
def threshold_backward(output_grad: Array, input: Array, threshold: Scalar) -> Array:
    """The gradient of threshold, and of relu: zero where the input does not exceed `threshold`."""
    return drop_where(input <= threshold, output_grad)


@native
def hardshrink_backward(output_grad: Array, input: Array, lambd: Scalar) -> Array:
    """The gradient of hardshrink."""
    return drop_where(np.abs(input) <= lambd, output_grad)  # of nan it stays, as in PyTorch


@native
def softshrink_backward(output_grad: Array, input: Array, lambd: Scalar) -> Array:
    """The gradient of softshrink."""
    return drop_where(np.abs(input) <= lambd, output_grad)  # of nan it stays, as in PyTorch


@native
def hardtanh_backward(output_grad: Array, input: Array, min_val: Scalar, max_val: Scalar) -> Array:
    """The gradient of hardtanh."""
    return drop_where(np.logical_or(input <= min_val, input >= max_val), output_grad)


@native
@_in_float32
def hardsigmoid_backward(output_grad: Array, input: Array) -> Array:
    """The gradient of hardsigmoid."""
    return keep_where(np.logical_and(input > -3, input < 3), output_grad / 6)


@native
@_in_float32
def hardswish_backward(output_grad: Array, input: Array) -> Array:
    """The gradient of hardswish."""
    return drop_where(input <= -3, _select(input < 3, output_grad * (input / 3 + 0.5), output_grad))


@native
@_in_float32
def elu_backward(output_grad: Array, input: Array, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Array:
    """The gradient of elu; at zero it is that of the exponential branch."""
    below = output_grad * np.exp(keep_where(input < 0, input) * input_scale) * (alpha * scale * input_scale)
    return _select(input <= 0, below, output_grad * scale)


@native
@_in_float32
def leaky_relu_backward(output_grad: Array, input: Array, negative_slope: Scalar) -> Array:
    """The gradient of leaky_relu."""
    return _select(input > 0, output_grad, output_grad * negative_slope)
