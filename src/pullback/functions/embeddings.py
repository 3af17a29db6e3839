"""Embeddings in the forms that PyTorch's top-level functions have."""

from __future__ import annotations

import pullback.generated as G
from pullback.kernels.embeddings import check_rows, renormalized_rows
from pullback.graph.history import bump_version
from pullback.tensor.tensor import Tensor


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of `weight` at `indices`. The gradient is dense, also with `sparse`.

    >>> import pullback
    >>> pullback.embedding(pullback.tensor([[1.0], [2.0], [3.0]]), pullback.tensor([2, 0]))
    tensor([[3.],
            [1.]])
    """
    return G.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)  # type: ignore[no-any-return]


def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down, in place and unrecorded, the rows at `indices` whose norm is above `max_norm`."""
    check_rows("embedding_renorm_", weight._array, indices._array)
    weight._array[...] = renormalized_rows(weight._array, indices._array, max_norm, norm_type)
    bump_version(weight)
    return weight
