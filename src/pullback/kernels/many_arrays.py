"""What is done to every array of a list, in one call where it is compiled."""

from __future__ import annotations

import numpy as np

from pullback.native import native
from pullback.typing import Array


@native
def scale_arrays(arrays: list[Array], factor: float) -> bool:
    """Multiply every array by a number, in place; whether all results are finite."""
    finite = True
    for array in arrays:
        array *= factor
        finite = finite and bool(np.isfinite(array).all())
    return finite


@native
def scale_into(targets: list[Array], sources: list[Array], factor: float) -> None:
    """Write every source, times a number, into the target of its place, in one pass where their dtypes are the same."""
    for target, source in zip(targets, sources, strict=True):
        if source.dtype == target.dtype and source.dtype.kind in "fc":
            np.multiply(source, source.dtype.type(factor), out=target)
        else:
            target[...] = source * source.dtype.type(factor)
