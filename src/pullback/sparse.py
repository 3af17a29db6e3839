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
from pullback.backend.dtype import dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sum"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse matrix and a dense one."""
    if reduce != "sum":
        raise NotImplementedError(f"sparse.mm: reduce={reduce!r} is not provided, only 'sum'")
    return functions.spmm(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)`."""
    product = functions.spmm(mat1, mat2)
    return mat * beta + product * alpha if beta != 1 or alpha != 1 else mat + product


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over `dim`, or over everything; sparse where dimensions are left."""
    return input.sum(dim, dtype=dtype)


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
