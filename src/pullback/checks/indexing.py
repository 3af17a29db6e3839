"""What the kernels of kernels/indexing.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.typing import Array, Arrays, Dim, Shape


def select(input: Array, dim: Dim, index: int) -> None:
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    if not -input.shape[dim] <= index < input.shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )


def slice_view(input: Array, dim: Dim, start: int, end: int, step: int) -> None:
    if input.ndim == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")


def index_select(input: Array, dim: Dim, index: Array) -> None:
    if index.ndim > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but got dim: {index.ndim}")
    if index.dtype.kind != "i" or index.itemsize < 4:
        raise RuntimeError(
            f"index_select(): Expected dtype int32 or int64 for index, but got {scalar_type_name(index.dtype)}"
        )
    if input.ndim == 0 and index.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    if input.ndim > 1 and index.size and input.shape[dim] == 0:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")


def gather(input: Array, dim: Dim, index: Array, sparse_grad: bool = False) -> None:
    if index.size == 0:
        return
    if index.dtype.str[1:] not in ("i4", "i8"):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d in range(index.ndim):
        if d != dim and input.ndim and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
                f"{list(input.shape)} apart from dimension {dim}"
            )


def take(input: Array, index: Array) -> None:
    if index.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {scalar_type_name(index.dtype)}")
    if input.size == 0 and index.size:
        raise IndexError("take(): tried to take from an empty tensor")


def masked_select(input: Array, mask: Array) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")


def _check_broadcast(indices: Arrays) -> None:
    """Refuse index tensors whose shapes do not go together."""
    try:
        np.broadcast_shapes(*[i.shape for i in indices])
    except ValueError:
        shapes = ", ".join(str(list(i.shape)) for i in indices)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


def _refuse_empty_dims(input: Array, indices: Arrays, dims: Shape) -> None:
    """Refuse positions in a dimension that has none."""
    for positions, dim in zip(indices, dims, strict=True):
        if positions.size and not input.shape[dim]:
            raise IndexError(f"index is out of bounds for dimension with size 0 (dimension {dim} of the tensor)")
