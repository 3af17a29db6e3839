"""Undoing broadcasting and reductions."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.typing import Dims, Shape


@declare(twin="passes")
def expand_reduced(grad: Any, shape: Shape, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a sum: `grad` seen at every element that was summed."""
    if not keepdim and dim is not None and shape != ():
        for d in sorted(dim):
            grad = F.unsqueeze(grad, d)
    return F.expand(grad, shape)


@declare(exact=True, same_values=True)
def sum_to(grad: Any, shape: Shape) -> Any:
    """Sum a gradient over the dimensions along which an input of `shape` was broadcast."""
    if tuple(grad.shape) == tuple(shape):
        return grad
    if not shape:
        return F.sum_all(grad)
    extra = grad.ndim - len(shape)
    if extra < 0:  # values assigned at positions may have more dimensions, of size 1
        return F.reshape(F.sum_to(grad, shape[-extra:]), tuple(shape))
    dims = tuple(range(extra)) + tuple(
        [extra + i for i, n in enumerate(shape) if n == 1 and grad.shape[extra + i] != 1]
    )
    if dims:
        grad = F.sum(grad, dims, True)
    return F.reshape(grad, tuple(shape)) if extra else grad


@declare(same_values=True)
def sum_to_like(grad: Any, shape: Shape, dtype: Any) -> Any:
    """As `sum_to`, then in the input's dtype; a complex gradient of a real input keeps its real part."""
    return F.to_dtype(F.sum_to(grad, shape), dtype)
