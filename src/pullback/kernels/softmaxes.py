"""Softmax and its logarithm, shifted by the maximum so that nothing overflows, in as few passes as NumPy allows."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import cast_array, is_at_hand
from pullback.checks.dtypes import require_real_floating
from pullback.kernels.accumulation import accurate_sum, contiguous, floated, largest_along, reduced_axes, widened
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Dims


@native
def softmax(input: Array, dim: Dim) -> Array:
    """Exponentials along `dim`, divided by their sum."""
    if input.dtype.char not in "fd" and input.size:
        require_real_floating("softmax_lastdim_kernel_impl", input)
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
def softmax_grad(grad: Array, result: Array, dim: int) -> Array:
    """The gradient of a softmax."""
    if result.ndim == 0:
        return grad * _alone(result)
    grad, values = widened(grad), widened(result)
    product = grad * values
    total = accurate_sum(product, (dim,), True)
    product -= values * total
    return cast_array(product, result.dtype)


@native
def log_softmax(input: Array, dim: Dim) -> Array:
    """The logarithm of softmax along `dim`."""
    if input.dtype.char not in "fd" and input.size:
        require_real_floating("log_softmax_lastdim_kernel_impl", input)
    if input.size == 0 or input.ndim == 0:
        return np.array(_alone(input))
    values = widened(input)
    result = values - largest_along(values, dim)
    total = np.asarray(accurate_sum(_exp_below_zero(result), (dim,), True))
    result -= np.log(total, out=total)
    return cast_array(contiguous(result), input.dtype)


@native
def log_softmax_grad(grad: Array, result: Array, dim: int) -> Array:
    """The gradient of a log_softmax."""
    if result.ndim == 0:
        return grad * _alone(result)
    grad = widened(grad)
    product = _exp_below_zero(widened(result))
    product *= accurate_sum(grad, (dim,), True)
    np.subtract(grad, product, out=product)
    return cast_array(product, result.dtype)


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
