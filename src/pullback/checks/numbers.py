"""What kernels ask of Python's numbers: that a dtype can hold them."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from pullback.backend.dtype import cpp_type_name, number_as
from pullback.typing import Array, DType, Scalar


def checked_number(value: Scalar, dtype: DType) -> Any:
    """A Python number as a NumPy scalar, refused where the type cannot hold it; fractions are cut off."""
    if dtype.kind == "f" and dtype.itemsize > 1 and isinstance(value, (int, float)) and -60000 < value < 60000:
        return dtype.type(value)  # the common case: even float16 holds it
    if isinstance(value, complex) and dtype.kind not in "bcW":
        if value.imag:
            raise overflow(dtype)
        value = value.real
    if dtype.kind in "iu" and not isinstance(value, complex):
        info = np.iinfo(dtype)
        lowest = -info.max if dtype.kind == "u" and not isinstance(value, float) else info.min
        if not lowest <= value <= info.max:  # nan is not
            raise overflow(dtype)
        return number_as(int(value), dtype)
    result = number_as(value, dtype)
    if dtype.kind not in "bW" and cmath.isfinite(value) and not np.isfinite(result):
        raise overflow(dtype)
    return result


def filling_number(value: Scalar, dtype: DType) -> Any:
    """As `checked_number`, for what is filled: 16 bits take infinity for a number that they cannot hold."""
    is_half = dtype.itemsize == 2 and dtype.kind not in "iu"
    return number_as(value, dtype) if is_half and not isinstance(value, complex) else checked_number(value, dtype)


def overflow(dtype: DType, is_element: bool = False) -> RuntimeError:
    """A value, of an operation or an element of a new tensor, is too large for a dtype."""
    name = (
        str(dtype) if is_element else f"{dtype}_t" if dtype.kind in "iu" and dtype != np.int32 else cpp_type_name(dtype)
    )
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


def element_as(value: Scalar, dtype: DType) -> Any:
    """What is stored of a number that a tensor is made of, refused where the type cannot hold it.

    -1 wraps around in an unsigned type.
    """
    kind = dtype.kind
    if isinstance(value, complex) and kind not in "bcW":
        raise TypeError("must be real number, not complex")
    if kind not in "iu":
        return value
    info = np.iinfo(dtype)
    if isinstance(value, float) and not info.min <= value <= info.max:  # nan is not
        raise overflow(dtype, is_element=True)
    whole = int(value)  # type: ignore[arg-type]  # not complex here
    if not -(2**63) <= whole < (2**64 if kind == "u" else 2**63):
        raise ValueError("Overflow when unpacking long long")
    if whole > info.max or (whole < info.min and (kind == "i" or whole < -info.max)):
        raise overflow(dtype, is_element=True)
    return number_as(whole, dtype)


def check_scale(input: Array, alpha: Scalar) -> None:
    """Refuse a factor `alpha` that is not of the kind of `input`."""
    kind = input.dtype.kind
    if kind in "biu" and isinstance(alpha, (float, complex)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if kind not in "cW" and isinstance(alpha, complex):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if kind != "b" and isinstance(alpha, bool):
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
