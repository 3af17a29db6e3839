"""What the kernels of kernels/signs.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def copysign(input: Array, other: Array) -> None:
    refuse_kinds(input, "c", "copysign_cpu")


def abs(input: Array) -> None:
    refuse_kinds(input, "b", "abs_cpu")
