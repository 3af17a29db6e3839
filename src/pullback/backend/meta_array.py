"""MetaArray: an array of the device "meta", whose shape and dtype count and whose values do not.

It is an ordinary array under another type: NumPy hands the type on to what is computed from it, and memory that nobody
writes to costs nothing. Values that are there all the same are never shown.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from pullback.backend.device import META
from pullback.typing import Array


class MetaArray(np.ndarray):  # type: ignore[misc]  # NumPy is untyped to the checker
    """An array without values of interest."""

    __array_priority__ = 1.0  # what is joined with it is like it
    place = META

    def _refuse_number(self, *arguments: Any) -> NoReturn:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no values")

    def _refuse_values(self, *arguments: Any) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    item = __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse_number
    tolist = _refuse_values


def as_meta(array: Array) -> Array:
    """The same memory on the device "meta"."""
    return array.view(MetaArray)


def empty_meta(array: Array) -> Array:
    """An array on the device "meta" in the shape, dtype and layout of `array`."""
    return np.empty_like(array, subok=False).view(MetaArray)


def is_meta(array: Any) -> bool:
    """Whether an array is on the device "meta"."""
    return type(array) is MetaArray
