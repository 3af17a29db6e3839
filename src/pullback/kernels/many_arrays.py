"""What is done to every array of a list, in place and in one call where it is compiled."""

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
