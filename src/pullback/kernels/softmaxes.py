"""Softmax and its logarithm, shifted by the maximum so that nothing overflows, in as few passes as NumPy allows."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import cast_array, is_at_hand
from pullback.checks import checked
from pullback.kernels.accumulation import accurate_sum, contiguous, floated, largest_along, reduced_axes, widened
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Dims


@native
@checked
def softmax(input: Array, dim: Dim) -> Array:
    """Exponentials along `dim`, divided by their sum."""
    if input.size == 0 or input.ndim == 0:
        return np.ones_like(input) if input.size == 0 else cast_array(_alone(input) + 1, input.dtype)
    values = widened(input)
    result = values - largest_along(values, dim)
    _exp_below_zero(result, out=result)
    result /= accurate_sum(result, (dim,), True)
    return cast_array(contiguous(result), input.dtype)


@by_device
def safe_softmax(input: Array, dim: Dim) -> Array:
    """A softmax that is zero where all along `dim` is minus infinity."""
    result = softmax(input, dim)
    hidden = np.isneginf(widened(input)).all(dim, keepdims=True) if input.size and input.ndim else np.False_
    if not is_at_hand(hidden) or hidden.any():
        np.copyto(result, 0, where=hidden)
    return result


def _exp_below_zero(values: Array, out: Array | None = None) -> Array:
    """Exponentials of numbers up to zero: compiled, they take three quarters of the time of others."""
    return np.exp(values, out=out)


def _exp_of_shifted(values: Array) -> Array:
    """Exponentials of numbers up to zero and of infinity."""
    return np.exp(values)


def _alone(input: Array) -> Array:
    """Zero for one finite number, NaN otherwise."""
    return input - input


@native
def softmax_backward_data(output_grad: Array, output: Array, dim: Dim) -> Array:
    """The gradient of a softmax."""
    if output.ndim == 0:
        return output_grad * _alone(output)
    grad, values = widened(output_grad), widened(output)
    product = grad * values
    total = accurate_sum(product, (dim,), True)
    product -= values * total
    return cast_array(product, output.dtype)


@native
@checked
def log_softmax(input: Array, dim: Dim) -> Array:
    """The logarithm of softmax along `dim`."""
    if input.size == 0 or input.ndim == 0:
        return np.array(_alone(input))
    values = widened(input)
    result = values - largest_along(values, dim)
    total = np.asarray(accurate_sum(_exp_below_zero(result), (dim,), True))
    result -= np.log(total, out=total)
    return cast_array(contiguous(result), input.dtype)


@native
def log_softmax_backward_data(output_grad: Array, output: Array, dim: Dim) -> Array:
    """The gradient of a log_softmax."""
    if output.ndim == 0:
        return output_grad * _alone(output)
    grad = widened(output_grad)
    product = _exp_below_zero(widened(output))
    product *= accurate_sum(grad, (dim,), True)
    np.subtract(grad, product, out=product)
    return cast_array(product, output.dtype)


@native
def logsumexp(input: Array, dim: Dims, keepdim: bool = False) -> Array:
    """The logarithm of the sum of exponentials over `dim`."""
    values = widened(floated(input))
    axes = reduced_axes(input, dim)
    if input.size == 0:
        total = accurate_sum(values, axes, keepdim)
        return cast_array(np.log(total), floated(input).dtype)
    real = values.real if values.dtype.kind == "c" else values
    top = largest_along(real, axes[0]) if len(axes) == 1 else np.max(real, axis=axes, keepdims=True)
    top = np.where(np.isinf(top), np.zeros_like(top), top)
    shifted = values - top
    total = np.log(accurate_sum(_exp_of_shifted(shifted), axes, True))
    total = total + top
    return cast_array(contiguous(total if keepdim else np.squeeze(total, axes)), floated(input).dtype)
