"""Powers: PyTorch's overloads of pow, and what is made of them."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import complex128, dtype, float64, scalar_type_name
from pullback.checks.numbers import overflow
from pullback.facts import declare
from pullback.functions.conversion import convert
from pullback.graph.in_place import in_place, write_out
from pullback.graph.overwriting import overwrite
from pullback.kernels import exponential as kernels
from pullback.kernels.overwriting import overwriting
from pullback.modes.function_modes import is_told
from pullback.modes.switches import process
from pullback.tensor.foreign_arguments import ask_foreign, is_foreign
from pullback.tensor.tensor import Tensor, TensorBase

_pow = overwriting(kernels.pow_scalar)


@declare(found="torch and method")
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise to a power; base or exponent may be a number.

    `input` and `exponent` (one of them may be a number) broadcast to the shape of the result. y = input ** exponent.

    >>> import pullback
    >>> pullback.pow(2, pullback.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """
    if process.modes and is_told(by_itself=True):
        return ask_foreign(pow, (input, exponent), {"out": out})
    if not isinstance(exponent, TensorBase):
        if is_foreign(exponent) or is_foreign(input):
            return ask_foreign(pow, (input, exponent), {"out": out})
        if isinstance(exponent, int) and not 0 <= exponent < 128:
            _check_integer_exponent(input, exponent)
        return G.pow_scalar(input, exponent, out=out)
    if isinstance(input, TensorBase):
        return G.pow(input, exponent, out=out)
    if is_foreign(exponent):
        return ask_foreign(pow, (input, exponent), {"out": out})
    return G.pow_base(exponent, input, out=out)


@declare(bare=True, found="method")
def pow_(input: Tensor, exponent: Any) -> Any:
    """In-place version of pow."""
    if (type(exponent) is float or type(exponent) is int) and overwrite(_pow, input, exponent):
        return input
    return in_place(pow, input, exponent)


def reflected_pow(input: Tensor, other: Any) -> Any:
    """Compute other ** input."""
    return pow(other, input) if isinstance(other, TensorBase) else G.pow_base(input, other)


@declare(bare=True, structure="elementwise", found="torch and method")
def square(input: Tensor, *, out: Any = None) -> Any:
    """Multiply by itself.

    Any shape; integers stay integers. y = input ** 2.

    >>> import pullback
    >>> pullback.square(pullback.tensor([-2., 3.]))
    tensor([4., 9.])
    """
    return G.pow_scalar(input, 2, out=out)


@declare(found="torch and method")
def square_(input: Tensor) -> Any:
    """In-place version of square."""
    if overwrite(_pow, input, 2):
        return input
    return in_place(square, input)


def _double_precision(*values: Any) -> dtype:
    """The dtype of powers in double precision."""
    found = [value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex) for value in values]
    return complex128 if True in found else float64


@declare(
    out_dtype="the output given to float_power has dtype {1} but the operation's result requires dtype {0}",
    found="torch and method",
)
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise to a power in double precision.

    Both are broadcast together; one may be a number. The result is float64, or complex128 for complex arguments.

    >>> import pullback
    >>> pullback.float_power(pullback.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=pullback.float64)
    """
    wide = _double_precision(input, exponent)
    first, second = [convert(value, wide) if isinstance(value, Tensor) and value.dtype is not wide else value
                     for value in (input, exponent)]  # fmt: skip
    result = pow(first, second)
    return result if out is None else write_out("float_power", out, result)


@declare(found="method")
def float_power_(input: Tensor, exponent: Any) -> Any:
    """In-place version of float_power, for double precision alone."""
    wide = _double_precision(input, exponent)
    if input.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {scalar_type_name(input._array.dtype)} but the operation's result "
            f"requires dtype {scalar_type_name(wide.numpy_dtype)}"
        )
    return in_place(float_power, input, exponent)


def _check_integer_exponent(input: Any, exponent: int) -> None:
    """Refuse powers that integers cannot express; the kernel sees the exponent only in their dtype."""
    numpy_dtype = input._array.dtype if isinstance(input, TensorBase) else None
    if numpy_dtype is None or numpy_dtype.kind not in "iu":
        return
    if exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if exponent >> (numpy_dtype.itemsize * 8 - (numpy_dtype.kind == "i")):
        raise overflow(numpy_dtype)
