"""What the kernels of kernels/clamping.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_complex_bounds, refuse_kinds
from pullback.checks.numbers import checked_number
from pullback.typing import Array, Scalar


def _no_order(function: str) -> RuntimeError:
    return RuntimeError(f"{function} not implemented for complex tensors.")


def maximum(input: Array, other: Array) -> None:
    if input.dtype.kind == "c":
        raise _no_order("maximum")


def minimum(input: Array, other: Array) -> None:
    if input.dtype.kind == "c":
        raise _no_order("minimum")


def fmax(input: Array, other: Array) -> None:
    if input.dtype.kind == "c":
        raise _no_order("fmax")


def fmin(input: Array, other: Array) -> None:
    if input.dtype.kind == "c":
        raise _no_order("fmin")


def clamp(input: Array, min: Scalar | None = None, max: Scalar | None = None) -> None:
    refuse_complex_bounds(input)
    refuse_kinds(input, "b", "clamp")
    if input.dtype.kind in "iu":
        for bound in (min, max):
            if bound is not None:
                checked_number(bound, input.dtype)


def clamp_tensor(input: Array, min: Array | None = None, max: Array | None = None) -> None:
    refuse_complex_bounds(input)
    if min is not None and max is not None:
        refuse_kinds(input, "b", "clamp_cpu")
