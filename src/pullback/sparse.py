"""Sparse tensors under the names of `torch.sparse`: coordinate format, products with dense matrices.

>>> import pullback
>>> adjacency = pullback.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse()
>>> mm(adjacency, pullback.ones(2, 1))
tensor([[1.],
        [2.]])
"""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.backend.dtype import dtype, float16, float32, float64, int8, int16, int32, int64, scalar_type_name, uint8
from pullback.backend.layout import strided
from pullback.creation import arange
from pullback.graph.sparse_nodes import shown_as
from pullback.tensor.sparse_tensor import SparseCsrTensor, SparseTensor
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse matrix and a dense one; the terms of each element are reduced by `reduce`."""
    if reduce == "sum":
        product = functions.spmm(mat1, mat2)
        return shown_as(product, "SparseAddmmBackward0") if product.layout is strided else product
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    sparse: Any = mat1
    array = sparse.coalesce()._sparse if type(mat1) is SparseTensor else sparse._sparse
    rows, columns = new_tensor(array.indices[0]), new_tensor(array.indices[1])
    terms = mat2.index_select(0, columns) * sparse.values().unsqueeze(1)
    places = rows.unsqueeze(1).expand(terms.shape)
    zeros = mat2.new_zeros((array.shape[0], mat2.shape[1]))
    return zeros.scatter_reduce(0, places, terms, reduce, include_self=False)


_REDUCTIONS = frozenset(("mean", "amax", "amin"))


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places where the matrix of rows `input` has values."""
    sparse: Any = input
    if not isinstance(input, SparseCsrTensor):
        raise RuntimeError(f"Expected self to have sparse csr layout, but got {input.layout}")
    rows, columns = (new_tensor(line) for line in sparse._sparse.indices)
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return functions.with_values(sparse, sparse.values() * beta + products * alpha)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix with the rows of `diagonals` on its diagonals, shifted by `offsets`; columns decide what is used.

    >>> import pullback
    >>> spdiags(pullback.arange(3), pullback.tensor([1]), (3, 3)).to_dense()
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    rows, places = diagonals.reshape(-1, diagonals.shape[-1]), offsets.reshape(-1)
    _check_diagonals(rows, places, tuple(shape), layout)
    indices, values = [], []
    for row, offset in zip(rows, places.tolist(), strict=True):
        first, last = max(offset, 0), min(shape[0] + offset, shape[1], rows.shape[1])
        columns = arange(first, max(last, first))
        indices.append(functions.stack([columns - offset, columns]))
        values.append(row[columns])
    matrix = functions.sparse_coo_tensor(functions.cat(indices, 1), functions.cat(values), tuple(shape))
    return matrix if layout is None else matrix.coalesce().to_sparse(layout=layout)


def _check_diagonals(rows: Tensor, offsets: Tensor, shape: tuple[int, ...], layout: Any) -> None:
    """Refuse diagonals that make no matrix."""
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {scalar_type_name(offsets._array.dtype)}")
    if rows.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({offsets.shape[0]})"
        )
    if len(set(offsets.tolist())) != offsets.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout is not None and layout.name not in ("sparse_coo", "sparse_csr", "sparse_csc"):
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout.name.title()}"
        )
    if any(not -shape[0] < offset < shape[1] for offset in offsets.tolist()):
        raise RuntimeError(f"Diagonals {offsets.tolist()} must cross a matrix of shape {list(shape)}")


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)`."""
    product = functions.spmm(mat1, mat2)
    total = mat * beta + product * alpha if beta != 1 or alpha != 1 else mat + product
    return shown_as(total, "SparseAddmmBackward0")


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over `dim`, or over everything; sparse where dimensions are left."""
    total = input.sum(dim, dtype=dtype)
    return total if dim is None else shown_as(total, "SparseSumBackward0")


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax of the stored values along a dimension; the others count as minus infinity."""
    return functions.sparse_softmax(input, dim, dtype=dtype)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of the softmax of the stored values along a dimension."""
    return functions.sparse_log_softmax(input, dim, dtype=dtype)


class SparseTensorType(type):
    """The type of a name like `sparse.FloatTensor`: it answers `isinstance` by layout and element type."""

    dtype: dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype

    def __call__(cls, indices: Any, values: Any, size: Any = None) -> SparseTensor:
        return functions.sparse_coo_tensor(indices, values, size, dtype=cls.dtype)


def _named(name: str, kind: dtype) -> Any:
    return SparseTensorType(name, (), {"dtype": kind, "__doc__": f"Sparse tensors of dtype {kind.name}."})


FloatTensor, DoubleTensor, HalfTensor = (
    _named("FloatTensor", float32),
    _named("DoubleTensor", float64),
    _named("HalfTensor", float16),
)
LongTensor, IntTensor, ShortTensor = (
    _named("LongTensor", int64),
    _named("IntTensor", int32),
    _named("ShortTensor", int16),
)
CharTensor, ByteTensor = _named("CharTensor", int8), _named("ByteTensor", uint8)
