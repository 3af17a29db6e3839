"""Views and copies in another shape."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.typing import Array, Dim, DType, Shape


def clone(input: Array) -> Array:
    """A copy."""
    return np.array(input, copy=True, order="K")


def to_dtype(input: Array, dtype: DType) -> Array:
    """The same values in another dtype; complex to real keeps the real part."""
    return cast_array(input, dtype)


def expand(input: Array, size: Shape) -> Array:
    """A view with dimensions of size 1 repeated without copying."""
    lead = len(size) - input.ndim
    wanted = tuple(input.shape[i - lead] if n == -1 else n for i, n in enumerate(size))
    view = np.broadcast_to(input, wanted)
    view.flags.writeable = True
    return view


def transpose(input: Array, dim0: Dim, dim1: Dim) -> Array:
    """A view with two dimensions exchanged."""
    return np.swapaxes(input, dim0, dim1) if input.ndim else input


def to_integer(input: Array, dtype: DType) -> Array:
    """The same values in an integer or bool dtype."""
    return cast_array(input, dtype)
