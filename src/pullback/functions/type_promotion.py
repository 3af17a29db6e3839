"""PyTorch's type promotion, asked about instead of applied."""

from __future__ import annotations

from typing import Any

from pullback.backend.dtype import can_cast as _can_cast
from pullback.backend.dtype import dtype, from_numpy_dtype, promote_dtypes, result_dtype
from pullback.backend.naming import display_namespace
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.tensor.tensor import TensorBase


@declare(found="torch")
def result_type(
    tensor1: Any = None, tensor2: Any = None, *, tensor: Any = None, other: Any = None, scalar: Any = None,
    scalar1: Any = None, scalar2: Any = None,
) -> dtype:  # fmt: skip
    """The dtype that arithmetic on two tensors or numbers would give.

    >>> import pullback
    >>> pullback.result_type(pullback.tensor([1, 2]), 1.0)
    pullback.float32
    """
    for number in (tensor1, tensor2):
        if isinstance(number, str):
            raise wrong_type("result_type", "tensor", 1, "Tensor", number)
    given = [t for t in (tensor1, tensor2, tensor, other, scalar, scalar1, scalar2) if t is not None]
    return from_numpy_dtype(result_dtype([t._array if isinstance(t, TensorBase) else t for t in given]))


@declare(found="torch")
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both convert to without losing their category.

    What an operation on tensors of both, neither of them without dimensions, computes in.

    >>> import pullback
    >>> pullback.promote_types(pullback.int64, pullback.float16)
    pullback.float16
    """
    _check_dtypes("promote_types", type1=type1, type2=type2)
    return from_numpy_dtype(promote_dtypes(type1.numpy_dtype, type2.numpy_dtype))


@declare(found="torch")
def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of one dtype may be written into a tensor of another.

    Not from complex to real, from float to integer, or from anything else to bool.

    >>> import pullback
    >>> pullback.can_cast(pullback.int64, pullback.float16), pullback.can_cast(pullback.float32, pullback.int32)
    (True, False)
    """
    _check_dtypes("can_cast", from_=from_, to=to)
    return _can_cast(from_.numpy_dtype, to.numpy_dtype)


def _check_dtypes(function: str, **given: dtype) -> None:
    for position, (name, value) in enumerate(given.items(), 1):
        if not isinstance(value, dtype):
            raise wrong_type(function, name, position, f"{display_namespace()}.dtype", value)
