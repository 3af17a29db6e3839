"""Elementary functions to the last bit of the C library's, and multiplications fused with an addition.

PyTorch draws with scalar calls of libm and with fused multiply-add. NumPy's own loops differ from libm in the last
bit (log1p in 7 % of arguments), which is visible in float64 results only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pullback.typing import Array, DType

_FLOAT64 = np.dtype(np.float64)
_SPLIT = 2.0**27 + 1


def through_libm(function: Callable[[float], float], values: Array) -> Array:
    """Apply a function of Python's `math`, which calls libm."""
    return np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)


def log(values: Array, dtype: DType) -> Array:
    """The logarithm of positive float64 numbers, exactly libm's if the result is meant to be float64."""
    return through_libm(math.log, values) if dtype == _FLOAT64 else np.log(values)


def log1p(values: Array, dtype: DType) -> Array:
    """The logarithm of 1 + values, as `log`."""
    return through_libm(math.log1p, values) if dtype == _FLOAT64 else np.log1p(values)


def exp(values: Array, dtype: DType) -> Array:
    """The exponential, as `log`."""
    return through_libm(_exp, values) if dtype == _FLOAT64 else np.exp(values)


def tan(values: Array, dtype: DType) -> Array:
    """The tangent, as `log`."""
    return through_libm(math.tan, values) if dtype == _FLOAT64 else np.tan(values)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def power(base: Array, exponent: Array) -> Array:
    """Powers of float64 numbers, exactly libm's."""
    return np.fromiter(map(_power, base.tolist(), exponent.tolist()), np.float64, len(base))


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def narrow(values: Array, dtype: DType) -> Array:
    """Round float64 to `dtype`, to one of 16 bits by way of float32 as PyTorch does."""
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        values = values.astype(np.float32)
    return values.astype(dtype, copy=False)


def multiply_add(a: Array, b: float, c: float) -> Array:
    """a * b + c, rounded once, for float32 or float64 and numbers of that dtype."""
    b, c = float(a.dtype.type(b)), float(a.dtype.type(c))
    if c == 0 or b == 1:
        scaled: Array = a if b == 1 else a * a.dtype.type(b)
        return np.asarray(scaled + a.dtype.type(c))
    if a.dtype == np.float32:
        # The product is exact in float64; that the sum is rounded twice matters once in 2**29.
        return (a.astype(np.float64) * b + c).astype(np.float32)
    return _multiply_add64(a, b, c)


def _multiply_add64(a: Array, b: float, c: float) -> Array:
    """By error-free transformations (Dekker's product, Knuth's sum)."""
    product = a * b
    a_high = a * _SPLIT - (a * _SPLIT - a)
    b_high = b * _SPLIT - (b * _SPLIT - b)
    a_low, b_low = a - a_high, b - b_high
    product_error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    virtual = total - product
    sum_error = (product - (total - virtual)) + (c - virtual)
    fused = total + (sum_error + product_error)
    return np.where(np.isfinite(fused), fused, total)
