"""What the kernels of kernels/exponential.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def logaddexp(input: Array, other: Array) -> None:
    refuse_kinds(input, "biu", "logaddexp_cpu")
