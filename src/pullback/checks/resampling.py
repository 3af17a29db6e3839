"""What the kernels of kernels/resampling.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.checks.shapes import nothing_to_pool
from pullback.typing import Array, Shape


def resample(
    input: Array, sizes: Shape, method: str, align_corners: bool = False, scales: tuple[float | None, ...] | None = None
) -> None:
    if method == "area" and 0 in input.shape[input.ndim - len(sizes) :]:
        raise nothing_to_pool(f"adaptive_avg_pool{max(len(sizes), 2)}d", input.shape)
    if input.size:
        refuse_kinds(input, "bic", f"{'adaptive_avg_pool' if method == 'area' else 'upsample_' + method}{len(sizes)}d")
