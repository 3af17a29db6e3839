"""What the kernels of kernels/arithmetic.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Scalar


def floor_divide(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "bc", "div_floor_cpu")


def remainder(input: Array, other: Array) -> None:
    refuse_kinds(input, "bc", "remainder_cpu")


def fmod(input: Array, other: Array) -> None:
    refuse_kinds(input, "bc", "fmod_cpu")


def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> None:
    refuse_kinds(input, "b", "addcmul_cpu_out")


def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1) -> None:
    if input.dtype.kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert an operand to a floating-point dtype, or "
            "write (input + value * trunc(tensor1 / tensor2)).to(input.dtype) for the truncating form."
        )
