"""What printing needs to know of an array: the part that is shown, widened to exact Python numbers, and its range.

None of these is an operation; `tensor/formatting.py` and `tensor/number_format.py` call them directly.
"""

from __future__ import annotations

import numpy as np

from pullback.typing import Array


def corners(input: Array, edgeitems: int) -> Array:
    """Keep the first and last `edgeitems` of each dimension that is longer than both; read nothing else."""
    return input[np.ix_(*(_shown_positions(size, edgeitems) for size in input.shape))]


def _shown_positions(size: int, edgeitems: int) -> list[int]:
    if size <= 2 * edgeitems:
        return list(range(size))
    return [*range(edgeitems), *range(size - edgeitems, size)]


def widen(input: Array) -> Array:
    """Return floats as float64 and complex as complex128 (both exact); integers and booleans as they are."""
    if input.dtype.kind in "biu":
        return input
    return input.astype(np.complex128 if input.dtype.kind in "cW" else np.float64)


def magnitude_range(input: Array) -> tuple[float, float, bool] | None:
    """Return the least and greatest magnitude of the finite non-zero values and whether all are whole.

    None if there are no such values.
    """
    values = input[np.isfinite(input) & (input != 0)]
    if values.size == 0:
        return None
    magnitudes = np.abs(values)
    return float(magnitudes.min()), float(magnitudes.max()), bool((values == np.ceil(values)).all())
