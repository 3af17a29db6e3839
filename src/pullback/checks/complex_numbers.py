"""What the kernels of kernels/complex_numbers.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def abs(input: Array) -> None:
    refuse_kinds(input, "b", "abs_cpu")
