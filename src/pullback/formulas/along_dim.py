"""Gradients of choices along a dimension; on arrays the kernels of the same name serve."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.native import compiled_on_arrays
from pullback.typing import Shape


@compiled_on_arrays
@declare(fresh=True)
def put_along(grad: Any, indices: Any, shape: Shape, dim: int) -> Any:
    """Zeros with the gradients at their places along `dim`, each place taken once."""
    return F.scatter(F.zeros_in_shape(grad, shape), dim, indices, grad)


@compiled_on_arrays
@declare(fresh=True)
def add_along(grad: Any, indices: Any, shape: Shape, dim: int) -> Any:
    """Zeros with the gradients added at their places along `dim`."""
    return F.scatter_add(F.zeros_in_shape(grad, shape), dim, indices, grad)


@compiled_on_arrays
@declare(fresh=True)
def put_reduced(grad: Any, indices: Any, shape: Shape, dim: int, keepdim: bool) -> Any:
    """Zeros with the gradients of a choice along `dim` at the places chosen."""
    if not keepdim and shape:
        grad, indices = F.unsqueeze(grad, dim), F.unsqueeze(indices, dim)
    return F.put_along(grad, indices, shape, dim)
