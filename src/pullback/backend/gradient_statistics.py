"""What became of the numbers of a gradient: how many are zero, too small, too large, and how far they are off."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pullback.backend.dtype import finfo, from_numpy_dtype
from pullback.typing import Array, DType


class Statistics(NamedTuple):
    """Counts over the elements of a gradient."""

    elements: int
    zeros: int
    subnormal: int
    infinite: int
    nans: int
    largest: float
    """The largest magnitude that is finite."""
    smallest: float
    """The smallest magnitude that is not zero; infinity where there is none."""


def is_narrow(dtype: DType) -> bool:
    """Whether a dtype has floating-point numbers of less than 64 bits each."""
    return (dtype.kind in "fV" and dtype.itemsize < 8) or (dtype.kind == "c" and dtype.itemsize < 16)


def wide_dtype(dtype: DType) -> DType:
    """The dtype of 64 bits a number, where the given one has less."""
    if not is_narrow(dtype):
        return dtype
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def widest(array: Array) -> Array:
    """The array in 64 bits a number."""
    wide: Array = array.astype(wide_dtype(array.dtype), copy=False)
    return wide


def limits(dtype: DType) -> tuple[float, float, float]:
    """The smallest number above zero, the smallest normal one and the largest of a dtype."""
    known = finfo(from_numpy_dtype(dtype))
    return float(known.smallest_normal) * float(known.eps), float(known.smallest_normal), float(known.max)


def statistics(array: Array) -> Statistics:
    """Count what there is in a gradient."""
    magnitudes = np.abs(widest(array))
    finite = magnitudes[np.isfinite(magnitudes)]
    nonzero = finite[finite > 0]
    _, normal, _ = limits(array.dtype) if array.dtype.kind in "fVc" else (0.0, 0.0, 0.0)
    return Statistics(
        int(array.size),
        int(finite.size - nonzero.size),
        int(np.count_nonzero(nonzero < normal)),
        int(np.count_nonzero(np.isinf(magnitudes))),
        int(np.count_nonzero(np.isnan(magnitudes))),
        float(finite.max(initial=0.0)),
        float(nonzero.min(initial=np.inf)),
    )


def flushed_exponents(array: Array, exact: Array) -> dict[int, int]:
    """Of the elements that became zero though they are not: how many have which power of two."""
    lost = np.abs(exact[(np.asarray(array) == 0) & (exact != 0)])
    powers, counts = np.unique(np.floor(np.log2(lost[lost > 0])), return_counts=True)
    return {int(power): int(count) for power, count in zip(powers, counts, strict=True)}


def squared_error(array: Array, exact: Array) -> tuple[float, float]:
    """The sums of squares of the difference and of the exact values, where both are finite."""
    wide = widest(array)
    usable = np.isfinite(wide) & np.isfinite(exact)
    difference = np.abs(wide[usable] - exact[usable])
    return float(np.sum(difference * difference)), float(np.sum(np.abs(exact[usable]) ** 2))
