"""What the kernels of kernels/folding.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Shape


def im2col(input: Array, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> None:
    refuse_kinds(input, "iu", "im2col_out_cpu")
