"""Comparisons of whole tensors."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.kernels.comparison import equal_arrays
from pullback.tensor.tensor import Tensor


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    if input is other and input._array.dtype.kind not in "fcV":
        return True
    return equal_arrays(input._array, other._array)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements differ by at most `atol + rtol * |other|`."""
    close: Any = G.isclose(input, other, rtol, atol, equal_nan)
    return bool(close._array.all())
