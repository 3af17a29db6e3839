"""Sums, means and other reductions over dimensions."""

from __future__ import annotations

import numpy as np

from pullback.typing import Array, Dims, DType, Shape


def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Array:
    """Sum over `dim`, or over everything."""
    if dtype is None and input.dtype.kind in "biu":
        dtype = np.dtype(np.int64)
    axes = None if dim is None or dim == () else dim
    return np.sum(input, axis=axes, keepdims=keepdim, dtype=dtype)  # type: ignore[no-any-return]


def expand_reduced(grad: Array, shape: Shape, dim: Dims, keepdim: bool) -> Array:
    """The gradient of a sum: `grad` seen at every element that was summed (a read-only view)."""
    if shape == ():
        return grad
    if dim is None or dim == ():
        return np.broadcast_to(grad.reshape((1,) * len(shape)), shape)
    if not keepdim:
        grad = grad.reshape([1 if i in dim else n for i, n in enumerate(shape)])
    return np.broadcast_to(grad, shape)
