"""Operators of rules and formulas on Tensors: for a number, the operations that PyTorch's own rules record for one.

A user's `x * 2` is a product of two tensors, one of them wrapped (MulBackward0). A rule of PyTorch's multiplies by a number
(MulBackward1), and who looks at the graph of a gradient sees it. What stands for a tensor may be a number too.
"""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.backend.array_module import as_array
from pullback.tensor.tensor import Tensor, new_tensor


def plus(first: Any, second: Any) -> Any:
    """`first + second`."""
    if isinstance(first, Tensor):
        return first + second if isinstance(second, Tensor) else F.add_scalar(first, second)
    return F.add_scalar(second, first) if isinstance(second, Tensor) else first + second


def minus(first: Any, second: Any) -> Any:
    """`first - second`."""
    if isinstance(first, Tensor):
        return first - second if isinstance(second, Tensor) else F.sub_scalar(first, second)
    return F.sub(_wrapped(first, second), second) if isinstance(second, Tensor) else first - second


def times(first: Any, second: Any) -> Any:
    """`first * second`."""
    if isinstance(first, Tensor):
        return first * second if isinstance(second, Tensor) else F.mul_scalar(first, second)
    return F.mul_scalar(second, first) if isinstance(second, Tensor) else first * second


def over(first: Any, second: Any) -> Any:
    """`first / second`."""
    if isinstance(first, Tensor):
        return first / second if isinstance(second, Tensor) else F.div_scalar(first, second)
    return F.div(_wrapped(first, second), second) if isinstance(second, Tensor) else first / second


def _wrapped(number: Any, like: Tensor) -> Tensor:
    return new_tensor(as_array(number).astype(like._array.dtype))
