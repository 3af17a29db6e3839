"""Forms of elementwise kernels that write into their first argument, for in-place operations that are not recorded.

Each takes an array of float32 or float64 without gaps, then arrays of its dtype that are of its shape or 0-dim, and
numbers, by position; it returns whether the array now holds the result. False leaves it untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.native import extension
from pullback.typing import Array, Scalar

Overwriting = Callable[..., bool]

_LARGEST = 3.4e38
"""Numbers beyond it are left to the operation: float32 may not hold them."""

_UFUNCS = {
    "mul": np.multiply, "div": np.divide, "neg": np.negative, "sqrt": np.sqrt, "abs": np.absolute,
    "maximum": np.maximum, "minimum": np.minimum, "clamp_min": np.maximum, "clamp_max": np.minimum,
}  # fmt: skip
"""Kernels that are one function of NumPy, for floating point numbers."""


def overwriting(kernel: Any) -> Overwriting:
    """The form of `kernel` that writes into its first argument."""
    name = kernel.__name__
    reference = _WRITTEN.get(name) or (_by_ufunc(_UFUNCS[name]) if name in _UFUNCS else _by_kernel(kernel))
    form: Overwriting = reference if extension is None else extension.bind_overwriting(name, reference)
    return form


def write_value(input: Array, value: Array | float) -> bool:
    """Write a value, or the values of an array, into an array."""
    if type(value) is np.ndarray:
        input[...] = value
    elif abs(value) < _LARGEST:
        input.fill(value)
    else:
        return False
    return True


def _by_ufunc(function: Any) -> Overwriting:
    def overwrite(input: Array, *operands: Any) -> bool:
        function(input, *operands, out=input)
        return True

    return overwrite


def _by_kernel(kernel: Any) -> Overwriting:
    def overwrite(input: Array, *operands: Any) -> bool:
        try:
            result = kernel(input, *operands)
        except (TypeError, ValueError, RuntimeError):
            return False  # the operation itself says what is wrong
        if result.dtype != input.dtype or result.shape != input.shape:
            return False
        input[...] = result
        return True

    return overwrite


def _add(input: Array, other: Array | Scalar, alpha: Scalar = 1) -> bool:
    np.add(input, other if alpha == 1 else other * alpha, out=input)
    return True


def _sub(input: Array, other: Array | Scalar, alpha: Scalar = 1) -> bool:
    np.subtract(input, other if alpha == 1 else other * alpha, out=input)
    return True


def _addcmul(input: Array, tensor1: Array, tensor2: Array, value: float = 1) -> bool:
    if not abs(value) < _LARGEST:
        return False
    product = tensor1 * tensor2
    np.add(input, product if value == 1 else product * value, out=input)
    return True


def _addcdiv(input: Array, tensor1: Array, tensor2: Array, value: float = 1) -> bool:
    if not abs(value) < _LARGEST:
        return False
    np.add(input, (tensor1 if value == 1 else tensor1 * value) / tensor2, out=input)
    return True


def _lerp_scalar(input: Array, end: Array, weight: float) -> bool:
    step = end - input
    if abs(weight) < 0.5:
        step *= weight
        np.add(input, step, out=input)
    else:
        step *= 1 - weight
        np.subtract(end, step, out=input)
    return True


def _clamp(input: Array, min: float, max: float) -> bool:
    np.maximum(input, min, out=input)
    np.minimum(input, max, out=input)
    return True


_WRITTEN: dict[str, Overwriting] = {
    "add": _add, "sub": _sub, "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp_scalar": _lerp_scalar,
    "clamp": _clamp,
}  # fmt: skip
"""Kernels of several functions, without a copy at the end."""
