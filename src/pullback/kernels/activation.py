"""Activation functions, element by element. The gradients of the kinked ones are kernels too."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.halves import FLOAT32, cast_half
from pullback.checks import checked
from pullback.checks.numbers import checked_number
from pullback.kernels.arithmetic import mul
from pullback.kernels.dtype_support import _in_float32
from pullback.kernels.selection import _select
from pullback.kernels.special import erf
from pullback.kernels.special_evaluation import _through_float64
from pullback.native import native
from pullback.typing import Array, Dim, Scalar

_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
# NumPy's maximum with a number is not vectorised, its clip is: 100,000 elements take 40 us and 14 us.
_LARGE = 8192


@native
@checked
def relu(input: Array) -> Array:
    """Positive elements as they are, zero for the rest.

    `input` has any shape, and the result has the same. y = max(input, 0); the derivative at 0 is 0.
    """
    if input.size > _LARGE and input.dtype.kind == "f":
        return np.clip(input, 0, np.inf)
    return np.maximum(input, 0)


@native
def sigmoid(input: Array) -> Array:
    """Compute 1 / (1 + exp(-input)).

    `input` has any shape, and the result has the same. y lies between 0 and 1; its derivative is y * (1 - y).
    """
    if input.dtype.itemsize == 2:
        return cast_half(sigmoid(cast_half(input, FLOAT32)), input.dtype)
    return 1 / (1 + _through_float64(np.exp, -input))


@native
@_in_float32
@checked
def logsigmoid(input: Array) -> Array:
    """Compute log(sigmoid(input)) without overflow.

    Elementwise. y = -log(1 + exp(-x)).

    >>> import pullback
    >>> pullback.nn.functional.logsigmoid(pullback.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    return np.minimum(input, 0) - np.log1p(np.exp(-np.abs(input)))


@native
@_in_float32
@checked
def silu(input: Array) -> Array:
    """Compute input * sigmoid(input)."""
    return input / (1 + np.exp(-input))


@native
@_in_float32
@checked
def mish(input: Array) -> Array:
    """Compute input * tanh(softplus(input))."""
    return input * np.tanh(np.log1p(np.exp(input)))


@native
@_in_float32
@checked
def gelu(input: Array, *, approximate: str = "none") -> Array:
    """Multiply by the normal distribution function, exact or in its "tanh" approximation.

    `input` has any shape, and the result has the same. y = x * (1 + erf(x / sqrt(2))) / 2; for `approximate`="tanh" y
    = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2.
    """
    if approximate == "none":
        return 0.5 * input * (1 + erf(input * _SQRT_HALF))
    inner = _SQRT_TWO_OVER_PI * (input + _CUBIC * input * input * input)
    return 0.5 * input * (1 + _through_float64(np.tanh, inner))


@native
@_in_float32
@checked
def softplus(input: Array, beta: Scalar = 1, threshold: Scalar = 20) -> Array:
    """Compute log(1 + exp(beta * input)) / beta; the input itself where that product exceeds `threshold`.

    `input` has any shape, and the result has the same. It is smooth and positive, and close to relu for a large
    `beta`.
    """
    scaled = input * beta
    return _select(scaled > threshold, input, np.log1p(np.exp(scaled)) / beta)


@native
@_in_float32
@checked
def softshrink(input: Array, lambd: Scalar = 0.5) -> Array:
    """Move towards zero by `lambd`, not beyond.

    Any shape. y = x - lambd where x > lambd, x + lambd where x < -lambd, else 0.
    """
    step = input.dtype.type(lambd)
    moved = _select(input > step, input - step, input + step)
    return _select(np.abs(input) <= step, input * 0, moved)


@native
@checked
def hardshrink(input: Array, lambd: Scalar = 0.5) -> Array:
    """Zero where the magnitude does not exceed `lambd`.

    Any shape. y = x where |x| > lambd, else 0.
    """
    return _select(np.abs(input) <= input.dtype.type(lambd), input.dtype.type(0), input)


@native
@checked
def hardtanh(input: Array, min_val: Scalar = -1.0, max_val: Scalar = 1.0) -> Array:
    """Clamp to [min_val, max_val]."""
    return np.minimum(np.maximum(input, input.dtype.type(min_val)), input.dtype.type(max_val))


@native
@_in_float32
@checked
def hardsigmoid(input: Array) -> Array:
    """Compute clamp(input + 3, 0, 6) / 6."""
    return np.minimum(np.maximum(input + 3, 0), 6) / 6


@native
@_in_float32
@checked
def hardswish(input: Array) -> Array:
    """Compute input * clamp(input + 3, 0, 6) / 6."""
    return input * np.minimum(np.maximum(input + 3, 0), 6) / 6


@native
@_in_float32
@checked
def elu(input: Array, alpha: Scalar = 1.0, scale: Scalar = 1, input_scale: Scalar = 1) -> Array:
    """Positive elements times `scale`; below zero `scale * alpha * (exp(input_scale * input) - 1)`."""
    return _select(input <= 0, _through_float64(np.expm1, input * input_scale) * (alpha * scale), input * scale)


@native
@checked
def celu(input: Array, alpha: Scalar = 1.0) -> Array:
    """Positive elements as they are; below zero `alpha * (exp(input / alpha) - 1)`."""
    return elu(input, alpha, 1, 1 / alpha)


@native
@_in_float32
@checked
def leaky_relu(input: Array, negative_slope: Scalar = 0.01) -> Array:
    """Positive elements as they are, the rest times `negative_slope`."""
    if 0 < negative_slope <= 1:  # type: ignore[operator]
        return np.maximum(input, input * negative_slope)
    return _select(input > 0, input, input * negative_slope)


@native
@checked
def prelu_kernel(input: Array, weight: Array) -> Array:
    """Positive elements as they are, the rest times `weight`."""
    return _select(input > 0, input, weight * input)


@native
@checked
def rrelu_with_noise(input: Array, noise: Array) -> Array:
    """Multiply by the slopes drawn for the elements, which are 1 for positive ones."""
    return input * noise


@native
@_in_float32
@checked
def threshold(input: Array, threshold: Scalar, value: Scalar) -> Array:
    """Elements above `threshold` as they are, `value` for the rest."""
    if input.dtype.kind in "iu":
        return _select(input <= checked_number(threshold, input.dtype), checked_number(value, input.dtype), input)
    return _select(input <= threshold, input.dtype.type(value), input)


@_in_float32
def glu(input: Array, dim: Dim = -1) -> Array:
    """Multiply the first half along `dim` by the sigmoid of the second.

    The size of `dim` must be even, and is half as large in the result. y = a * sigmoid(b), where a and b are the
    halves.
    """
    size = input.shape[dim]
    before = (slice(None),) * dim
    first, second = input[(*before, slice(size // 2))], input[(*before, slice(size // 2, None))]
    return mul(first, sigmoid(second))
