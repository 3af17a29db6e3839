"""What the kernels of kernels/arithmetic.py ask of their arguments."""

from __future__ import annotations

from pullback.checks import after_failure
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Scalar


@after_failure
def sub(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> None:
    if input.dtype.kind == "b" and getattr(other, "dtype", None) == input.dtype:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )


@after_failure
def rsub(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> None:
    sub(input, other, alpha=alpha)


@after_failure
def rsub_tensor(input: Array, other: Array, *, alpha: Scalar = 1) -> None:
    sub(input, other, alpha=alpha)


@after_failure
def neg(input: Array) -> None:
    if input.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


def div_rounded(input: Array, other: Array | Scalar, rounding_mode: str) -> None:
    refuse_kinds(input, "bc", f"div_{rounding_mode}_cpu")


def floor_divide(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "bc", "div_floor_cpu")


def remainder(input: Array, other: Array) -> None:
    refuse_kinds(input, "bc", "remainder_cpu")


def fmod(input: Array, other: Array) -> None:
    refuse_kinds(input, "bc", "fmod_cpu")


def gcd(input: Array, other: Array) -> None:
    refuse_kinds(input, "bfcV", "gcd_cpu")


def lcm(input: Array, other: Array) -> None:
    refuse_kinds(input, "bfcV", "lcm_cpu")


def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> None:
    refuse_kinds(input, "b", "addcmul_cpu_out")


def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> None:
    if input.dtype.kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert an operand to a floating-point dtype, or "
            "write (input + value * trunc(tensor1 / tensor2)).to(input.dtype) for the truncating form."
        )
