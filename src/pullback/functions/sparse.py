"""Sparse tensors in coordinate format, as gradients of embeddings and adjacency matrices need them."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import int64
from pullback.backend.sparse_array import SparseArray
from pullback.creation import as_tensor
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor


def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, **options: Any) -> SparseTensor:
    """A tensor of `values` at `indices`, zero elsewhere.

    >>> import pullback
    >>> pullback.sparse_coo_tensor([[0, 2]], [1.0, 3.0], (3,)).to_dense()
    tensor([1., 0., 3.])
    """
    places = as_tensor(indices)._array
    numbers = as_tensor(values, dtype=options.get("dtype"))._array
    if size is None:
        size = (*[int(row.max()) + 1 if row.size else 0 for row in places], *numbers.shape[1:])
    if places.ndim != 2 or places.shape[1] != numbers.shape[0]:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim + dense_dim: indices of shape {list(places.shape)} do not fit values "
            f"of shape {list(numbers.shape)}"
        )
    return new_sparse_tensor(SparseArray(places, numbers, tuple(size)))


def to_sparse(input: Tensor, sparse_dim: int | None = None, **options: Any) -> SparseTensor:
    """The tensor's values that are not zero, with their indices in the leading `sparse_dim` dimensions.

    >>> import pullback
    >>> pullback.tensor([0.0, 3.0]).to_sparse().indices()
    tensor([[1]])
    """
    if isinstance(input, SparseTensor):
        return input
    leading = input._array.ndim if sparse_dim is None else sparse_dim
    filled = input._array != 0
    places = (
        filled.any(axis=tuple(range(leading, filled.ndim))).nonzero() if leading < filled.ndim else filled.nonzero()
    )
    indices = as_tensor([place.tolist() for place in places], dtype=int64)._array.reshape(leading, -1)
    return new_sparse_tensor(SparseArray(indices, input._array[places], input._array.shape, True))


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one."""
    return G.mm(input, mat2)


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """As `spmm`."""
    return G.mm(input, mat)
