"""What the kernels of kernels/histograms.py ask of their arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def _check_dtypes(points: Array, bins: Sequence[Any]) -> None:
    edges = {d: given for d, given in enumerate(bins) if isinstance(given, np.ndarray)}
    for d, given in edges.items():
        if given.size == 0:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                f"for dimension {d}"
            )
        if given.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{points.dtype} and bins for dimension {d} with dtype {given.dtype}"
            )
    # PyTorch finds places among given edges in every floating-point dtype, and edges of its own in two.
    is_refused = points.dtype.itemsize == 2 and not edges
    refuse_kinds(points, "biucfV" if is_refused else "biuc", "histogram_cpu" if edges else "histogramdd")


def histogramdd(
    points: Array, bins: Sequence[Any], limits: Sequence[float] | None, weights: Array | None, density: bool
) -> None:
    _check_dtypes(points, bins)
    if len(bins) != points.shape[1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: got "
            f"{len(bins)} numbers of bins for points of {points.shape[1]} coordinates"
        )
    for dim, given in enumerate(bins):
        if not hasattr(given, "dtype"):
            _check_intervals(dim, given, limits)


def _check_intervals(dim: int, bins: int, limits: Sequence[float] | None) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    if limits is None:
        return
    low, high = float(limits[2 * dim]), float(limits[2 * dim + 1])
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(_not_finite(dim, low, high))
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
        )


def _not_finite(dim: int, low: float, high: float) -> str:
    return f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite"


def xor_bits(input: Array, dim: tuple[int, ...], keepdim: bool) -> None:
    refuse_kinds(input, "c", "xor_sum_cpu")
