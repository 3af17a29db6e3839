"""Arithmetic: PyTorch's overloads and aliases, and the number-first forms that operators need."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_array
from pullback.backend.dtype import cpp_type_name
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.graph.in_place import in_place
from pullback.graph.overwriting import overwrite
from pullback.kernels.linear_interpolation import lerp_scalar
from pullback.kernels.overwriting import overwriting
from pullback.tensor.arguments import number_beside
from pullback.tensor.tensor import Tensor, TensorBase

reflected_add = declare(found="")(G.add)
reflected_mul = declare(found="")(G.mul)
_lerp = overwriting(lerp_scalar)


def reflected_sub(input: Tensor, other: Any) -> Any:
    """`other - input`."""
    return (G.rsub_tensor if isinstance(other, TensorBase) else G.rsub)(input, other)


@declare(found="torch and method")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Divide element by element, as it is or rounded down ("floor") or towards zero ("trunc").

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result, in the dtype that both
    promote to. Integers are divided as floats unless `rounding_mode` is given. y = input / other.

    >>> import pullback
    >>> pullback.div(pullback.tensor([-7]), 2, rounding_mode="trunc")
    tensor([-3])
    """
    if rounding_mode is None:
        return G.div(input, other, out=out)
    if rounding_mode not in ("floor", "trunc"):
        if not isinstance(rounding_mode, str):
            raise wrong_type("div", "rounding_mode", None, "str", rounding_mode)
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return G.div_rounded(input, other, rounding_mode, out=out)


@declare(bare=True, found="method")
def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Any:
    """In-place version of div."""
    return G.div_(input, other) if rounding_mode is None else in_place(div, input, other, rounding_mode=rounding_mode)


divide = div
divide_ = div_


@declare(found="torch")
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Any:
    """Subtract `input`, scaled by `alpha`, from `other`."""
    return (G.rsub_tensor if isinstance(other, TensorBase) else G.rsub)(input, other, alpha=alpha)


def reflected_div(input: Tensor, other: Any) -> Any:
    """Compute other / input, for a number."""
    reciprocal = G.reciprocal(input)
    return reciprocal * other if is_array(other) else G.mul(reciprocal, other)  # NumPy takes arrays over from here


@declare(found="torch and method")
def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Divide and round down.

    Both are broadcast together; one may be a number. y = floor(input / other), also below zero. No gradient flows.

    >>> import pullback
    >>> pullback.floor_divide(pullback.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return G.floor_divide(number_beside(input, other), other, out=out)


def reflected_floor_divide(input: Tensor, other: Any) -> Any:
    """Compute other // input, for a number."""
    return floor_divide(other, input)


@declare(found="torch and method")
def remainder(input: Any, other: Any, *, out: Any = None) -> Any:
    """The remainder of a division rounded down: it has the sign of `other`.

    Tensors and numbers broadcast to one shape, that of the result. y = input - other * floor(input / other).

    >>> import pullback
    >>> pullback.remainder(pullback.tensor([5., -5.]), 3)
    tensor([2., 1.])
    """
    if isinstance(other, TensorBase):
        return G.remainder(number_beside(input, other), other, out=out)
    return G.remainder_scalar(input, other, out=out)


@declare(found="method")
def remainder_(input: Tensor, other: Any) -> Any:
    """In-place version of remainder."""
    return in_place(remainder, input, other)


def reflected_remainder(input: Tensor, other: Any) -> Any:
    """Compute other % input, for a number."""
    return remainder(other, input)


@declare(found="torch and method")
def fmod(input: Tensor, other: Any, *, out: Any = None) -> Any:
    """The remainder of a division rounded towards zero: it has the sign of `input`.

    Tensors and numbers broadcast to one shape, that of the result. y = input - other * trunc(input / other).

    >>> import pullback
    >>> pullback.fmod(pullback.tensor([5., -5.]), 3)
    tensor([ 2., -2.])
    """
    return (G.fmod if isinstance(other, TensorBase) else G.fmod_scalar)(input, other, out=out)


@declare(found="method")
def fmod_(input: Tensor, other: Any) -> Any:
    """In-place version of fmod."""
    return in_place(fmod, input, other)


@declare(same_values=True, structure="elementwise", found="torch and method")
def positive(input: Tensor) -> Any:
    """The tensor itself: `+input`."""
    if input._array.dtype == bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@declare(found="torch and method")
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = None) -> Any:
    """Interpolate linearly from `input` to `end`; `weight` is a number or a tensor.

    `input`, `end` and `weight` broadcast. y = input + weight * (end - input).
    """
    for name, value in (("end", end), ("weight", weight)):
        if not isinstance(value, Tensor) or value.dtype is input.dtype:
            continue
        if name == "end" or value._array.ndim:
            wanted, found = (cpp_type_name(t._array.dtype) for t in (input, value))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {found}")
    return (G.lerp if isinstance(weight, TensorBase) else G.lerp_scalar)(input, end, weight, out=out)


@declare(bare=True, found="method")
def lerp_(input: Tensor, end: Tensor, weight: Any) -> Any:
    """In-place version of lerp."""
    if type(weight) is float and overwrite(_lerp, input, end, weight):
        return input
    return in_place(lerp, input, end, weight)
