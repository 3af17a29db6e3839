"""What the kernels of kernels/linear_interpolation.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Scalar


def lerp(input: Array, end: Array, weight: Array) -> None:
    refuse_kinds(input, "biu", "lerp_kernel_tensor")


def lerp_scalar(input: Array, end: Array, weight: Scalar) -> None:
    refuse_kinds(input, "biu", "lerp_kernel_scalar")
