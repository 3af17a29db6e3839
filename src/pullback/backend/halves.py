"""Casts from and to the floats of 16 bits: compiled where they can be, since NumPy converts one number at a time."""

from __future__ import annotations

import numpy as np

from pullback.native import native
from pullback.typing import Array, DType

FLOAT32 = np.dtype(np.float32)


@native
def cast_half(array: Array, dtype: DType) -> Array:
    """`array` in another dtype, a copy. Compiled between float32 and float16 or bfloat16."""
    return array.astype(dtype)


def rounded(array: Array, dtype: DType) -> Array:
    """A result that was computed in float32, or in its own dtype, in `dtype`; the array itself where that is its own."""
    return array if array.dtype == dtype else cast_half(array, dtype)
