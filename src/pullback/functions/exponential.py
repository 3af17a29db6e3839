"""Powers: PyTorch's overloads of pow, and what is made of them."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import complex128, float64, result_dtype
from pullback.functions.conversion import convert
from pullback.graph.in_place import in_place, write_out
from pullback.tensor.tensor import Tensor, TensorBase


def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise to a power; base or exponent may be a number.

    >>> import pullback
    >>> pullback.pow(2, pullback.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """
    if not isinstance(exponent, TensorBase):
        return G.pow_scalar(input, exponent, out=out)
    if isinstance(input, TensorBase):
        return G.pow(input, exponent, out=out)
    return G.pow_base(exponent, input, out=out)


def pow_(input: Tensor, exponent: Any) -> Any:
    """In-place version of pow."""
    return in_place(pow, input, exponent)


def reflected_pow(input: Tensor, other: Any) -> Any:
    """Compute other ** input, for a number."""
    return G.pow_base(input, other)


def square(input: Tensor, *, out: Any = None) -> Any:
    """Multiply by itself."""
    return G.pow_scalar(input, 2, out=out)


def square_(input: Tensor) -> Any:
    """In-place version of square."""
    return in_place(square, input)


def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise to a power in double precision."""
    operands = [value._array if isinstance(value, TensorBase) else value for value in (input, exponent)]
    wide = complex128 if result_dtype(operands).kind == "c" else float64
    first, second = [convert(value, wide) if isinstance(value, Tensor) and value.dtype is not wide else value
                     for value in (input, exponent)]  # fmt: skip
    result = pow(first, second)
    return result if out is None else write_out("float_power", out, result)


def float_power_(input: Tensor, exponent: Any) -> Any:
    """In-place version of float_power."""
    return in_place(float_power, input, exponent)
