"""Addition, multiplication, division and what is made of them, element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from pullback.backend.array_module import in_memory_order, order_of_operands
from pullback.backend.halves import cast_half
from pullback.checks import checked
from pullback.checks.elements import division_by_zero
from pullback.checks.numbers import check_scale, checked_number
from pullback.kernels.dtype_support import _in_float32, _with_number
from pullback.native import by_device, by_element, native
from pullback.typing import Array, Scalar


def _in_order_of_first(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """Lay results out as PyTorch does: as the first operand lies, where NumPy, since operands differ, is row-major."""

    @wraps(kernel)
    def laid_out(input: Array, other: Any, **options: Scalar) -> Array:
        result = kernel(input, other, **options)
        if type(other) is not np.ndarray or (input.flags.c_contiguous and other.flags.c_contiguous):
            return result
        if result.ndim < 2:
            return result
        strides = [np.broadcast_to(operand, result.shape).strides for operand in (input, other)]
        return in_memory_order(result, order_of_operands(strides, result.shape))

    return laid_out


@native
@_in_order_of_first
def add(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> Array:
    """Add `other`, scaled by `alpha`, to `input`."""
    return input + other if alpha == 1 else _rounded(input + _scaled(other, alpha, input), input)


@native
@_in_order_of_first
def sub(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> Array:
    """Subtract `other`, scaled by `alpha`, from `input`."""
    return input - other if alpha == 1 else _rounded(input - _scaled(other, alpha, input), input)


@native
def rsub(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> Array:
    """Subtract `input`, scaled by `alpha`, from the number `other`."""
    return other - input if alpha == 1 else _rounded(other - _scaled(input, alpha, input), input)


@native
def rsub_tensor(input: Array, other: Array, *, alpha: Scalar = 1) -> Array:
    """Subtract `input`, scaled by `alpha`, from the tensor `other`."""
    return rsub(input, other, alpha=alpha)


@native
@_in_order_of_first
def mul(input: Array, other: Array | Scalar) -> Array:
    """Multiply element by element.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result, in the dtype that both
    promote to. y = input * other.
    """
    return input * other if input.dtype.itemsize != 2 else _with_number(np.multiply, input, other)


@by_device
def add_scalar(input: Array, other: Scalar) -> Array:
    """Add a number."""
    return add(input, other) if input.dtype.itemsize != 2 else _with_number(np.add, input, other)


@by_device
def sub_scalar(input: Array, other: Scalar) -> Array:
    """Subtract a number."""
    return sub(input, other) if input.dtype.itemsize != 2 else _with_number(np.subtract, input, other)


@by_device
def mul_scalar(input: Array, other: Scalar) -> Array:
    """Multiply by a number."""
    return mul(input, other)


@by_device
def div_scalar(input: Array, other: Scalar) -> Array:
    """Divide by a number."""
    return div(input, other)


@native
def div(input: Array, other: Array | Scalar) -> Array:
    """Divide element by element."""
    return input / other if input.dtype.itemsize != 2 else _with_number(np.true_divide, input, other)


@native
@checked
def div_rounded(input: Array, other: Array | Scalar, rounding_mode: str) -> Array:
    """Divide and round towards zero ("trunc") or down ("floor")."""
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if input.dtype.kind in "iu":
        return _truncated_quotient(input, other)
    if input.dtype.itemsize == 2:
        return _with_number(lambda input, other: np.trunc(input / other), input, other)  # rounded, then truncated
    return np.trunc(input / other)


@native
@checked
def floor_divide(input: Array, other: Array | Scalar) -> Array:
    """Divide and round down."""
    if input.dtype.kind in "iu":
        _refuse_zero(input, other)
    if input.dtype.itemsize == 2 and input.dtype.kind in "fV":
        return _with_number(_floored_in_steps, input, other)
    return np.floor_divide(input, other)


@native
@checked
def remainder(input: Array, other: Array) -> Array:
    """The remainder of a division rounded down: it has the sign of `other`; zero has that of `input`."""
    if input.dtype.kind in "iu":
        _refuse_zero(input, other)
        return np.remainder(input, other)
    rest = np.fmod(input, other)
    return np.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)


@native
def remainder_scalar(input: Array, other: Array | Scalar) -> Array:
    """As remainder, by a number."""
    return remainder(input, other)


@native
@checked
def fmod(input: Array, other: Array) -> Array:
    """The remainder of a division rounded towards zero: it has the sign of `input`."""
    if input.dtype.kind in "iu":
        _refuse_zero(input, other)
    return np.fmod(input, other)


@native
def fmod_scalar(input: Array, other: Array | Scalar) -> Array:
    """As fmod, by a number."""
    return fmod(input, other)


@native
def scaled_by(input: Array, value: Scalar) -> Array:
    """Multiply by the conjugate of a number, keeping the dtype: the gradient of an argument scaled by it."""
    factor = value.conjugate()
    return input * factor if input.dtype.itemsize != 2 else _with_number(np.multiply, input, factor)


@native
def neg(input: Array) -> Array:
    """Change the sign.

    `input` has any shape, and the result has the same. y = -input.
    """
    return -input


@native
def reciprocal(input: Array) -> Array:
    """Compute 1 / input.

    `input` has any shape, and the result has the same; integers become floats. y = 1 / input.
    """
    return 1 / input


@native
@_in_float32
@checked
def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> Array:
    """Add `value * tensor1 * tensor2` to `input`.

    The three tensors broadcast to one shape, that of the result; `value` is a number. y = input + value * tensor1 *
    tensor2.
    """
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * checked_number(value, input.dtype))


@native
@_in_float32
@checked
def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> Array:
    """Add `value * tensor1 / tensor2` to `input`.

    The three tensors broadcast to one shape, that of the result; `value` is a number. Integers are refused: y = input +
    value * tensor1 / tensor2.
    """
    quotient = (tensor1 if value == 1 else tensor1 * checked_number(value, input.dtype)) / tensor2
    return input + quotient


@by_element
def gcd(input: Array, other: Array) -> Array:
    """The greatest common divisor of integers.

    Both are broadcast together. gcd(0, n) = |n|.

    >>> import pullback
    >>> pullback.gcd(pullback.tensor([12, 7]), pullback.tensor([18, 21]))
    tensor([6, 7])
    """
    return np.gcd(input, other)


@by_element
def lcm(input: Array, other: Array) -> Array:
    """The least common multiple of integers, never negative.

    Both are broadcast together. |input * other| / gcd(input, other), and 0 where one is 0.

    >>> import pullback
    >>> pullback.lcm(pullback.tensor([4, 0]), pullback.tensor([6, 5]))
    tensor([12,  0])
    """
    return np.abs(np.lcm(input, other))


def conj(input: Array) -> Array:
    """The complex conjugate; a real array is returned as it is."""
    return input.conjugate()


def exactly(shown: Array, exact: Array) -> Array:
    """`exact`; on Tensors it is recorded as `shown`."""
    return exact


def conjugated(input: Array) -> Array:
    """The complex conjugate, as an operation of its own."""
    return input.conjugate()


def _scaled(other: Array | Scalar, alpha: Scalar, input: Array) -> Array:
    """`alpha * other` in the dtype of `input`, float32 for one of 16 bits, which must be able to hold `alpha`."""
    check_scale(input, alpha)
    kind = input.dtype.kind
    if kind == "u":
        alpha = int(alpha) % (1 << (8 * input.dtype.itemsize))  # type: ignore[arg-type]  # refused above
    if input.dtype.itemsize == 2 and kind in "fV":
        term = other if hasattr(other, "dtype") else np.asarray(other, input.dtype).astype(np.float32)
        return term * np.asarray(alpha, input.dtype).astype(np.float32)
    return other * np.asarray(alpha, input.dtype)


def _rounded(value: Array, input: Array) -> Array:
    """A sum in the dtype of `input`: one with a scaled term is rounded to 16 bits only here."""
    return value if input.dtype.itemsize != 2 else cast_half(value, input.dtype)


def _truncated_quotient(input: Array, other: Array | Scalar) -> Array:
    """Integer division rounded towards zero."""
    _refuse_zero(input, other)
    return (input - np.fmod(input, other)) // other


def _floored_in_steps(input: Array, other: Array) -> Array:
    """A quotient rounded down, by way of the remainder: PyTorch rounds to 16 bits at every step of it."""
    rest = np.fmod(input, other)
    quotient = (input - rest) / other
    quotient = np.where((rest != 0) & ((other < 0) != (rest < 0)), quotient - np.ones((), quotient.dtype), quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + np.ones((), whole.dtype), whole)
    whole = np.where(quotient != 0, whole, np.copysign(np.zeros((), whole.dtype), input / other))
    return np.where(other == 0, input / other, whole)


def _refuse_zero(input: Array, other: Array | Scalar) -> None:
    divisor: Any = other
    is_nonzero = divisor.all() if getattr(divisor, "ndim", 0) else divisor  # the method of a number takes a microsecond
    if input.size and not is_nonzero:
        raise division_by_zero()
