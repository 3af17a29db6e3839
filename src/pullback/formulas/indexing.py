"""Gradients of reading elements at positions; on arrays the kernels of the same name serve."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.native import compiled_on_arrays
from pullback.typing import Shape


@declare(fresh=True)
def index_back(grad: Any, shape: Shape, indices: Any, dims: Shape) -> Any:
    """The gradient of `index`: each position gets the sum over its occurrences."""
    placed = F.index_put(F.zeros_in_shape(grad, shape), indices, dims, grad, True)
    return F.called(placed, "IndexPutBackward0", "IndexPutImplBackward0")


@compiled_on_arrays
@declare(fresh=True)
def index_select_back(grad: Any, shape: Shape, dim: int, index: Any) -> Any:
    """The gradient of `index_select`."""
    return F.index_add(F.zeros_in_shape(grad, shape), dim, F.reshape(index, (-1,)), grad)


@declare(fresh=True, twin="passes")
def take_back(grad: Any, shape: Shape, index: Any) -> Any:
    """The gradient of `take`."""
    return F.put(F.zeros_in_shape(grad, shape), index, grad, True)


@declare(fresh=True, twin="passes")
def masked_select_back(grad: Any, shape: Shape, mask: Any) -> Any:
    """The gradient of `masked_select`."""
    from pullback.kernels.index_arrays import broadcast_shape

    wide = F.zeros_in_shape(grad, broadcast_shape(shape, mask.shape))
    return F.sum_to(F.masked_scatter(wide, mask, grad), shape)
