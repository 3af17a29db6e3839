"""What the kernels of kernels/complex_numbers.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.typing import Array


def polar(abs: Array, angle: Array) -> None:
    if abs.dtype.itemsize == 2:
        raise NotImplementedError(f"\"polar_cpu\" not implemented for '{scalar_type_name(abs.dtype)}'")
