"""Elements of dtypes that NumPy has from another package only, as wider ones: for files, where that is not installed."""

from __future__ import annotations

from typing import cast

import numpy as np

from pullback.backend.dtype import complex64, dtype, float32
from pullback.typing import Array, DType


def is_known(element: dtype) -> bool:
    """Whether arrays of the dtype can be made: those of another package only where that is installed."""
    try:
        return bool(element.numpy_dtype)
    except RuntimeError:
        return False


def dtype_in_memory(element: dtype) -> DType:
    """NumPy's dtype; of what it does not know, integers whose bytes lie in the same order."""
    if is_known(element):
        return element.numpy_dtype
    return np.dtype(np.uint8 if element.itemsize == 1 else np.uint16)


def wider_dtype(element: dtype) -> dtype:
    """The dtype that stands for one that NumPy does not know; every value of that is one of its own."""
    return complex64 if element.is_complex else float32


def widened_bytes(data: Array, element: dtype) -> Array:
    """The bytes of a storage of such elements as those of `wider_dtype`, in memory of their own."""
    if element.is_complex:
        values = data.view(np.float16).astype(np.float32)
    elif element.itemsize == 2:  # bfloat16: the upper half of a float32
        values = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.take(_values_of_bytes(element.name), data)
    return cast(Array, values.view(np.uint8))


# Bits of the exponent, its bias, and whether there are infinities (otherwise only one NaN per sign, or one at -0).
_FLOATS_OF_8_BITS = {
    "float8_e4m3fn": (4, 7, "nan"), "float8_e4m3fnuz": (4, 8, "one nan"),
    "float8_e5m2": (5, 15, "infinity"), "float8_e5m2fnuz": (5, 16, "one nan"),
}  # fmt: skip


def _values_of_bytes(name: str) -> Array:
    """The values of all 256 bytes as floats of 8 bits."""
    codes = np.arange(256)
    if name == "float8_e8m0fnu":  # powers of two alone
        values = np.ldexp(1.0, codes - 127)
        values[255] = np.nan
        return values.astype(np.float32)
    exponent_bits, bias, special = _FLOATS_OF_8_BITS[name]
    mantissa_bits = 7 - exponent_bits
    exponent = (codes & 127) >> mantissa_bits
    mantissa = (codes & (2**mantissa_bits - 1)) / 2**mantissa_bits
    values = np.ldexp(np.where(exponent == 0, mantissa, 1 + mantissa), np.maximum(exponent, 1) - bias)
    values = np.where(codes < 128, values, -values)
    if special == "nan":
        values[[127, 255]] = np.nan
    elif special == "one nan":
        values[128] = np.nan
    else:
        last = exponent == 2**exponent_bits - 1
        values[last] = np.where(mantissa[last] > 0, np.nan, np.where(codes[last] < 128, np.inf, -np.inf))
    return values.astype(np.float32)
