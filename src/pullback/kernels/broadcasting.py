"""Shapes under broadcasting, and undoing it: the only place where a gradient is summed to its input's shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import cast_array
from pullback.backend.halves import cast_half
from pullback.kernels.accumulation import add_short_rows, add_up, has_short_rows, widened
from pullback.native import by_device, native
from pullback.typing import Array, DType, Shape


def is_expandable_to(shape: Shape, desired: Shape) -> bool:
    """Whether a tensor of `shape` broadcasts to `desired`."""
    if len(shape) > len(desired):
        return False
    return all(a in (b, 1) for a, b in zip(reversed(shape), reversed(desired), strict=False))


@native
def sum_to(grad: Any, shape: Shape) -> Any:
    """Sum a gradient over the dimensions along which an input of `shape` was broadcast."""
    if grad.shape == shape:
        return grad
    extra = grad.ndim - len(shape)
    if extra < 0:  # values assigned at positions may have more dimensions, of size 1
        return sum_to(grad, shape[-extra:]).reshape(shape)
    axes = tuple(range(extra))
    if 1 in shape:
        axes += tuple([extra + i for i, size in enumerate(shape) if size == 1 and grad.shape[extra + i] != 1])
    if has_short_rows(grad, axes):
        grad = add_short_rows(grad)
    elif axes:
        wide = widened(grad)
        total = add_up(wide, axes, False, wide.dtype)
        grad = total if wide is grad else cast_half(total, grad.dtype)
    return grad.reshape(shape)


@native
def sum_to_like(grad: Any, shape: Shape, dtype: DType | None) -> Any:
    """As `sum_to`, then cast to the input's dtype, if given; a complex gradient of a real input keeps its real part."""
    summed = sum_to(grad, shape)
    return summed if dtype is None or summed.dtype == dtype else cast_array(summed, dtype)


@by_device
def broadcast_to(input: Array, size: Shape) -> Array:
    return np.broadcast_to(input, size)
