"""What the kernels of kernels/exponential.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Scalar


def logaddexp(input: Array, other: Array) -> None:
    refuse_kinds(input, "biu", "logaddexp_cpu")


def logaddexp2(input: Array, other: Array) -> None:
    refuse_kinds(input, "biuc", "logaddexp2_cpu")


def pow(input: Array, exponent: Array) -> None:
    refuse_kinds(input, "b", "pow")


def pow_base(exponent: Array, input: Array | Scalar) -> None:
    refuse_kinds(exponent, "b", "pow")


def pow_scalar(input: Array, exponent: Array | Scalar) -> None:
    if input.dtype.kind in "iu" and exponent < 0:  # type: ignore[operator]
        raise RuntimeError("Integers to negative integer powers are not allowed.")
