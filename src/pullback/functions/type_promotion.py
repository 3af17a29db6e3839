"""PyTorch's type promotion, asked about instead of applied."""

from __future__ import annotations

from typing import Any

from pullback.backend.dtype import can_cast as _can_cast
from pullback.backend.dtype import dtype, from_numpy_dtype, promote_dtypes, result_dtype
from pullback.tensor.tensor import TensorBase


def result_type(
    tensor1: Any = None, tensor2: Any = None, *, tensor: Any = None, other: Any = None, scalar: Any = None,
    scalar1: Any = None, scalar2: Any = None,
) -> dtype:  # fmt: skip
    """The dtype that arithmetic on two tensors or numbers would give.

    >>> import pullback
    >>> pullback.result_type(pullback.tensor([1, 2]), 1.0)
    pullback.float32
    """
    given = [t for t in (tensor1, tensor2, tensor, other, scalar, scalar1, scalar2) if t is not None]
    return from_numpy_dtype(result_dtype([t._array if isinstance(t, TensorBase) else t for t in given]))


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both convert to without losing their category."""
    return from_numpy_dtype(promote_dtypes(type1.numpy_dtype, type2.numpy_dtype))


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of one dtype may be written into a tensor of another."""
    return _can_cast(from_.numpy_dtype, to.numpy_dtype)
