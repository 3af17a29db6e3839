"""Sparse tensors in coordinate format, as gradients of embeddings and adjacency matrices need them."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import int64
from pullback.backend.sparse_array import SparseArray
from pullback.creation import as_tensor, zeros
from pullback.errors import kind_of, no_signature_fits
from pullback.facts import declare
from pullback.functions.sparse_algebra import (
    WORDS_OF_SPARSE_TENSORS,
    joined,
    sparse_of,
    sparse_product,
    to_sparse,
    values_of,
)
from pullback.tensor.arguments import refuse_unknown
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor, new_tensor


@declare(found="torch")
def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, **options: Any) -> SparseTensor:
    """A tensor of `values` at `indices`, zero elsewhere; a size alone makes one without values.

    >>> import pullback
    >>> pullback.sparse_coo_tensor([[0, 2]], [1.0, 3.0], (3,)).to_dense()
    tensor([1., 0., 3.])
    """
    refuse_unknown("sparse_coo_tensor", options, {*WORDS_OF_SPARSE_TENSORS, "is_coalesced"})
    if values is None:
        size = indices if size is None else size
        if not isinstance(size, (list, tuple)):
            raise no_signature_fits("sparse_coo_tensor", [kind_of(size)])
        indices, values = zeros(len(size), 0, dtype=int64), zeros(0)
    elif indices is None:
        raise no_signature_fits("sparse_coo_tensor", [f"values={kind_of(values)}"])
    places = as_tensor(indices).to(int64)._array
    given = as_tensor(values, dtype=options.get("dtype"))
    numbers = given._array
    if places.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if numbers.ndim == 0 or places.shape[1] != numbers.shape[0]:
        count = 0 if numbers.ndim == 0 else numbers.shape[0]
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: {count}"
        )
    if size is None:
        size = (*[int(row.max()) + 1 if row.size else 0 for row in places], *numbers.shape[1:])
    if len(size) != len(places) + numbers.ndim - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {len(places)}, "
            f"dense_dim = {numbers.ndim - 1}"
        )
    _check_places(places, tuple(size))
    sparse = sparse_of(places, given, tuple(size), bool(options.get("is_coalesced")))
    return sparse.detach().requires_grad_() if options.get("requires_grad") else sparse


def _check_places(places: Any, size: tuple[int, ...]) -> None:
    for dim, row in enumerate(places):
        if row.size and int(row.min()) < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {dim}")
        if row.size and int(row.max()) >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {int(row.max())}"
            )


@declare(found="torch")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one."""
    is_sparse = isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor)
    return sparse_product(input, mat2) if is_sparse else G.mm(input, mat2)


dsmm = spmm


@declare(found="torch")
def hspmm(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    """As `spmm`; the result has the rows in which the sparse matrix has values, each as one value.

    >>> import pullback
    >>> pullback.hspmm(pullback.tensor([[0.0, 0.0], [0.0, 2.0]]).to_sparse(), pullback.ones(2, 3)).indices()
    tensor([[1]])
    """
    array = mat1.coalesce()._sparse
    rows, row_of_value = SparseArray(array.indices[:1], array.values, array.shape[:1]).merged_indices()
    terms = G.index_select(mat2, 0, new_tensor(array.indices[1])) * values_of(mat1.coalesce()).unsqueeze(1)
    sums = mat2.new_zeros((rows.shape[1], mat2.shape[1])).index_add(0, new_tensor(row_of_value), terms)
    return sparse_of(rows, sums, (array.shape[0], mat2.shape[1]), True)


@declare(found="torch and method")
def sspaddmm(input: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)` as a sparse matrix; its indices may repeat."""
    product = to_sparse(spmm(mat1, mat2) * alpha)
    return joined(input * beta, product)


saddmm = declare(found="torch")(sspaddmm)


@declare(found="torch and method")
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """As `spmm`, with a sparse result."""
    return to_sparse(spmm(input, mat))
