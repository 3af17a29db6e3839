"""Sparse tensors, as far as gradients of embeddings need them."""

from __future__ import annotations

from typing import Any

from pullback.backend.sparse_array import SparseArray
from pullback.creation import as_tensor
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor


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
