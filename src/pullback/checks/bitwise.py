"""What the kernels of kernels/bitwise.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Scalar


def bitwise_and(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "fcV", "bitwise_and_cpu")


def bitwise_or(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "fcV", "bitwise_or_cpu")


def bitwise_xor(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "fcV", "bitwise_xor_cpu")


def bitwise_not(input: Array) -> None:
    refuse_kinds(input, "fcV", "bitwise_not_cpu")


def bitwise_left_shift(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "bfcV", "lshift_cpu")


def bitwise_right_shift(input: Array, other: Array | Scalar) -> None:
    refuse_kinds(input, "bfcV", "rshift_cpu")
