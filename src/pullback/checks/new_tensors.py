"""What new tensors ask of ranges and layouts."""

from __future__ import annotations

import math
from typing import Any

from pullback.typing import Shape


def check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    for bound in (start, end):
        if isinstance(bound, float) and not math.isfinite(bound):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0 and start > end) or (step < 0 and start < end):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def check_steps(steps: int) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def check_strides(size: Shape, stride: tuple[int, ...]) -> None:
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )


def check_layout(size: Shape, order: tuple[int, ...]) -> None:
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for dim in order:
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} in {list(order)})"
            )
    if len(set(order)) != len(order):
        raise RuntimeError(f"Duplicate dim not allowed: physical_layout {list(order)}")
