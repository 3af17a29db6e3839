"""What the kernels of kernels/rounding.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def _refuse_rounding(input: Array, name: str) -> None:
    refuse_kinds(input, "b", f"{name}_vml_cpu")
    if input.dtype.kind == "c" and name == "round":
        refuse_kinds(input, "c", "round_vml_cpu")
    if input.dtype.kind == "c":
        raise NotImplementedError(f"{name} is not supported for complex inputs")


def floor(input: Array) -> None:
    _refuse_rounding(input, "floor")


def ceil(input: Array) -> None:
    _refuse_rounding(input, "ceil")


def trunc(input: Array) -> None:
    _refuse_rounding(input, "trunc")


def round(input: Array) -> None:
    _refuse_rounding(input, "round")


def frac(input: Array) -> None:
    refuse_kinds(input, "biuc", "frac_cpu")


def round_decimals(input: Array, decimals: int) -> None:
    refuse_kinds(input, "biuc", "round_cpu")


def nextafter(input: Array, other: Array) -> None:
    refuse_kinds(input, "biuc", "nextafter_cpu")
