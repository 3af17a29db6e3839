"""What the kernels of kernels/comparison.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import not_implemented
from pullback.typing import Array, Scalar


def isclose(input: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> None:
    if input.dtype != other.dtype:
        raise RuntimeError(f"{scalar_type_name(input.dtype)} did not match {scalar_type_name(other.dtype)}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance:g}")


def isposinf(input: Array) -> None:
    _refuse_complex("isposinf", input)


def isneginf(input: Array) -> None:
    _refuse_complex("isneginf", input)


def _refuse_complex(name: str, input: Array) -> None:
    if input.dtype.kind == "c":
        raise RuntimeError(f"{name} does not support complex inputs.")


def lt(input: Array, other: Array | Scalar) -> None:
    if input.dtype.kind == "c":
        raise not_implemented("lt_cpu", input)


def le(input: Array, other: Array | Scalar) -> None:
    if input.dtype.kind == "c":
        raise not_implemented("le_cpu", input)


def gt(input: Array, other: Array | Scalar) -> None:
    if input.dtype.kind == "c":
        raise not_implemented("gt_cpu", input)


def ge(input: Array, other: Array | Scalar) -> None:
    if input.dtype.kind == "c":
        raise not_implemented("ge_cpu", input)
