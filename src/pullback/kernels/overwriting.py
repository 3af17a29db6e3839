"""Forms of elementwise kernels that write into their first argument, for in-place operations that are not recorded.

Each takes an array, then arrays and numbers by position, and returns whether the first now holds the result. False
leaves it untouched: it is not float32 or float64 without gaps, another is not of its dtype and shape (or 0-dim), or the
operation itself is to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend.blocks import BLOCK
from pullback.facts import fact_of
from pullback.native import native, overwriting_form
from pullback.typing import Array, Scalar

Overwriting = Callable[..., bool]

_LARGEST = 3.4e38
"""Numbers beyond it are left to the operation: float32 may not hold them."""
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_written: dict[str, Overwriting] = {}
"""Kernels of several functions, without a copy at the end."""


def overwriting(kernel: Any) -> Overwriting:
    """The form of `kernel` that writes into its first argument."""
    name = kernel.__name__
    ufunc = fact_of(name, "ufunc")
    reference = _written.get(name) or (_by_kernel(kernel) if ufunc is None else _by_ufunc(getattr(np, ufunc)))
    return overwriting_form(kernel, reference)


def _of_kernel(function: Overwriting) -> Overwriting:
    """Decorate the form of a kernel, which has its name with an underscore before it."""
    _written[function.__name__.removeprefix("_")] = function
    return function


def _fits(input: Array, other: Any) -> bool:
    """Whether `other` is a number, or an array that can be read beside `input` element by element."""
    if type(other) is float or type(other) is int:
        return True
    return other.dtype is input.dtype and (other.shape == input.shape or not other.ndim)


def _is_plain(input: Array) -> bool:
    dtype = input.dtype
    return (dtype is _FLOAT32 or dtype is _FLOAT64) and type(input) is np.ndarray and input.flags.carray


def _takes(input: Array, other: Any) -> bool:
    """Whether `input` can be overwritten by what is made of it and `other`. (Calls cost as much as the checks.)"""
    dtype = input.dtype
    if not ((dtype is _FLOAT32 or dtype is _FLOAT64) and type(input) is np.ndarray and input.flags.carray):
        return False
    if type(other) is float or type(other) is int:
        return True
    return other.dtype is dtype and (other.shape == input.shape or not other.ndim)


def _by_ufunc(function: Any) -> Overwriting:
    def overwrite(input: Array, *operands: Any) -> bool:
        if operands:
            if not _takes(input, operands[0]):
                return False
            function(input, operands[0], out=input)
            return True
        if not _is_plain(input):
            return False
        function(input, out=input)
        return True

    return overwrite


def _by_kernel(kernel: Any) -> Overwriting:
    def overwrite(input: Array, *operands: Any) -> bool:
        if not _is_plain(input) or not all(_fits(input, operand) for operand in operands):
            return False
        try:
            result = kernel(input, *operands)
        except (TypeError, ValueError, RuntimeError):
            return False
        if result.dtype != input.dtype or result.shape != input.shape:
            return False
        input[...] = result
        return True

    return overwrite


@native
def write_value(input: Array, value: Array | float) -> bool:
    """Write a value, or the values of an array, into an array."""
    if not _takes(input, value):
        return False
    if type(value) is np.ndarray:
        input[...] = value
    elif abs(value) < _LARGEST:
        input.fill(value)
    else:
        return False
    return True


def _in_blocks(form: Overwriting, input: Array, *operands: Any) -> bool:
    """Run a form of several passes on parts of large arrays, so that what is between them stays in the cache."""
    arrays = [operand for operand in operands if type(operand) is np.ndarray]
    if not _is_plain(input) or not all(_fits(input, array) for array in arrays):
        return False
    target = input.reshape(-1)
    flat = [operand.reshape(-1) if type(operand) is np.ndarray and operand.ndim else operand for operand in operands]
    for array in flat:
        is_apart = type(array) is not np.ndarray or not np.may_share_memory(array, target)
        if not is_apart and array.ctypes.data != target.ctypes.data:
            return False  # parts of it would be overwritten before they are read
    return all(
        form(
            target[start : start + BLOCK],
            *[part[start : start + BLOCK] if type(part) is np.ndarray and part.ndim else part for part in flat],
        )
        for start in range(0, input.size, BLOCK)
    )


@_of_kernel
def _add(input: Array, other: Array | Scalar, alpha: Scalar = 1) -> bool:
    if input.size > BLOCK and type(alpha) is not np.ndarray and alpha != 1:
        return _in_blocks(_add, input, other, alpha)
    if not _takes(input, other) or type(alpha) is np.ndarray:
        return False
    np.add(input, other if alpha == 1 else other * alpha, out=input)
    return True


@_of_kernel
def _sub(input: Array, other: Array | Scalar, alpha: Scalar = 1) -> bool:
    if input.size > BLOCK and type(alpha) is not np.ndarray and alpha != 1:
        return _in_blocks(_sub, input, other, alpha)
    if not _takes(input, other) or type(alpha) is np.ndarray:
        return False
    np.subtract(input, other if alpha == 1 else other * alpha, out=input)
    return True


@_of_kernel
def _addcmul(input: Array, tensor1: Array, tensor2: Array, value: float = 1) -> bool:
    if input.size > BLOCK:
        return _in_blocks(_addcmul, input, tensor1, tensor2, value)
    if not _are_products(input, tensor1, tensor2, value):
        return False
    product = tensor1 * tensor2
    if value != 1:
        product *= value
    np.add(input, product, out=input)
    return True


@_of_kernel
def _addcdiv(input: Array, tensor1: Array, tensor2: Array, value: float = 1) -> bool:
    if input.size > BLOCK:
        return _in_blocks(_addcdiv, input, tensor1, tensor2, value)
    if not _are_products(input, tensor1, tensor2, value):
        return False
    np.add(input, (tensor1 if value == 1 else tensor1 * value) / tensor2, out=input)
    return True


def _are_products(input: Array, tensor1: Any, tensor2: Any, value: Any) -> bool:
    arrays = type(tensor1) is type(tensor2) is np.ndarray and type(value) is not np.ndarray
    return arrays and _takes(input, tensor1) and _fits(input, tensor2) and abs(value) < _LARGEST


@_of_kernel
def _lerp_scalar(input: Array, end: Array, weight: float) -> bool:
    if input.size > BLOCK:
        return _in_blocks(_lerp_scalar, input, end, weight)
    if type(end) is not np.ndarray or not _takes(input, end):
        return False
    step = end - input
    if abs(weight) < 0.5:
        step *= weight
        np.add(input, step, out=input)
    else:
        step *= 1 - weight
        np.subtract(end, step, out=input)
    return True


@_of_kernel
def _clamp(input: Array, min: Array | float, max: Array | float) -> bool:
    if not _takes(input, min) or not _fits(input, max):
        return False
    np.maximum(input, min, out=input)
    np.minimum(input, max, out=input)
    return True


@_of_kernel
def _masked_fill(input: Array, mask: Array, value: float) -> bool:
    is_mask = type(mask) is np.ndarray and mask.dtype.kind == "b" and mask.shape == input.shape
    if not is_mask or not _is_plain(input) or type(value) is np.ndarray or _LARGEST < abs(value) < np.inf:
        return False
    np.copyto(input, value, where=mask)
    return True
