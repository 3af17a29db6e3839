"""What the kernels of kernels/signs.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def copysign(input: Array, other: Array) -> None:
    refuse_kinds(input, "c", "copysign_cpu")


def abs(input: Array) -> None:
    refuse_kinds(input, "b", "abs_cpu")


def sign(input: Array) -> None:
    if input.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )


def signbit(input: Array) -> None:
    if input.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
