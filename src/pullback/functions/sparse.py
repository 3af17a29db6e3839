"""Sparse tensors in coordinate format, as gradients of embeddings and adjacency matrices need them."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.creation import as_tensor
from pullback.functions.sparse_algebra import sparse_of, sparse_product, to_sparse
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor


def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, **options: Any) -> SparseTensor:
    """A tensor of `values` at `indices`, zero elsewhere.

    >>> import pullback
    >>> pullback.sparse_coo_tensor([[0, 2]], [1.0, 3.0], (3,)).to_dense()
    tensor([1., 0., 3.])
    """
    places = as_tensor(indices)._array
    given = as_tensor(values, dtype=options.get("dtype"))
    numbers = given._array
    if size is None:
        size = (*[int(row.max()) + 1 if row.size else 0 for row in places], *numbers.shape[1:])
    if places.ndim != 2 or places.shape[1] != numbers.shape[0]:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim + dense_dim: indices of shape {list(places.shape)} do not fit values "
            f"of shape {list(numbers.shape)}"
        )
    sparse = sparse_of(places, given, tuple(size), bool(options.get("is_coalesced")))
    return sparse.detach().requires_grad_() if options.get("requires_grad") else sparse


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one."""
    return sparse_product(input, mat2) if SparseTensor in (type(input), type(mat2)) else G.mm(input, mat2)


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """As `spmm`, with a sparse result."""
    return to_sparse(spmm(input, mat))
