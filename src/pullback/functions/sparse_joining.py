"""Joining sparse tensors: `cat` and `stack` of them have the values of all, at indices moved along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback.generated as G
from pullback.backend.sparse_array import joined_indices
from pullback.functions.sparse_algebra import sparse_of, sparse_to_dense, to_sparse, values_of
from pullback.graph.sparse_nodes import shown_as
from pullback.tensor.dims import wrap_dim
from pullback.tensor.sparse_tensor import CompressedTensor, SparseTensor
from pullback.tensor.tensor import Tensor


def sparse_cat(tensors: Sequence[Tensor], dim: int) -> Any:
    """The tensors one after another, as one sparse tensor; an index of two tensors stands there twice."""
    given = _all_sparse(tensors)
    arrays = [tensor._sparse for tensor in given]
    first = arrays[0]
    along = wrap_dim(dim, first.ndim)
    for position, array in enumerate(arrays):
        _check_fits(first, array, along, position)
    if along >= first.sparse_dim:
        return to_sparse(G.cat([sparse_to_dense(tensor) for tensor in given], along), first.sparse_dim)
    values = G.cat([values_of(tensor) for tensor in given], 0)
    shape = (*first.shape[:along], sum(array.shape[along] for array in arrays), *first.shape[along + 1 :])
    return shown_as(sparse_of(joined_indices(arrays, along), values, shape), "CatBackward0")


def sparse_stack(tensors: Sequence[Tensor], dim: int) -> Any:
    """The tensors along a new dimension, as one sparse tensor."""
    given = _all_sparse(tensors)
    along = wrap_dim(dim, given[0].ndim + 1)
    joined = sparse_cat([sparse_unsqueeze(tensor, along) for tensor in given], along)
    return shown_as(joined, "StackBackward0")


def sparse_unsqueeze(input: Any, dim: int) -> Any:
    """The tensor with a new dimension of size one; before the dense dimensions it is one that indices name."""
    array = input._sparse
    along = wrap_dim(dim, array.ndim + 1)
    shape = (*array.shape[:along], 1, *array.shape[along:])
    if along > array.sparse_dim:
        values = values_of(input).unsqueeze(along - array.sparse_dim + 1)
        result = sparse_of(array.indices, values, shape, array.coalesced)
    else:
        result = sparse_of(array.indices_with_new_dim(along), values_of(input), shape, array.coalesced)
    return shown_as(result, "UnsqueezeBackward0")


def attach_sparse_joining() -> None:
    """Let sparse tensors have these as methods."""
    setattr(SparseTensor, "unsqueeze", sparse_unsqueeze)  # noqa: B010  # as those of sparse_algebra


def _all_sparse(tensors: Sequence[Tensor]) -> list[SparseTensor]:
    """The tensors, after a check that all are in coordinate format."""
    given = []
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, SparseTensor) or isinstance(tensor, CompressedTensor):
            kind = "a matrix of rows or columns" if isinstance(tensor, CompressedTensor) else "a dense tensor"
            raise RuntimeError(
                f"Concatenating sparse tensors, but {kind} was found at position {position}. Make it one with to_sparse()."
            )
        given.append(tensor)
    return given


def _check_fits(first: Any, array: Any, along: int, position: int) -> None:
    if array.sparse_dim != first.sparse_dim or array.ndim != first.ndim:
        raise RuntimeError(
            f"All tensors must have the same sparse_dim and dense_dim: {first.sparse_dim}, {first.ndim - first.sparse_dim}, "
            f"but tensor at position {position} has {array.sparse_dim}, {array.ndim - array.sparse_dim}."
        )
    others = [d for d in range(first.ndim) if d != along]
    if any(array.shape[d] != first.shape[d] for d in others):
        raise RuntimeError(
            f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found "
            f"shape: {list(array.shape)} at position {position}"
        )
