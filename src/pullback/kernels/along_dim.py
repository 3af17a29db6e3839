"""Taking elements along a dimension by index and putting them back: what order statistics hand to their gradients."""

from __future__ import annotations

import numpy as np

from pullback.native import native
from pullback.typing import Array, Scalar


@native
def take_along(input: Array, indices: Array, dim: int) -> Array:
    """The elements that `indices` names along `dim`."""
    if input.ndim == 0:
        return np.broadcast_to(input, indices.shape).copy()
    return np.take_along_axis(input, indices, dim) if indices.ndim else input[indices]


def take_reduced(input: Array, indices: Array, dim: int, keepdim: bool) -> Array:
    """The one element along `dim` that each index of a reduction names."""
    if input.ndim == 0:
        return input
    if keepdim:
        return np.take_along_axis(input, indices, dim)
    return np.squeeze(np.take_along_axis(input, np.expand_dims(indices, dim), dim), dim)


def shift_and_fill(input: Array, dim: int, steps: int, fill: Scalar) -> Array:
    """The elements moved `steps` places along `dim`, with `fill` where none came from."""
    if input.ndim == 0:
        return np.full_like(input, fill) if steps else input
    size = input.shape[dim]
    result = np.full_like(input, fill)
    lead = (slice(None),) * dim
    if abs(steps) < size:
        target = slice(steps, None) if steps > 0 else slice(0, size + steps)
        source = slice(0, size - steps) if steps > 0 else slice(-steps, None)
        result[(*lead, target)] = input[(*lead, source)]
    return result
