"""What the kernels of kernels/interpolation.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Shape


def adaptive_avg_pool3d(input: Array, output_size: Shape) -> None:
    refuse_kinds(input, "biuc", "adaptive_avg_pool3d_cpu")
