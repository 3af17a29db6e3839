"""What the kernels of kernels/scans.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_complex, require_floating
from pullback.typing import Array, Dim


def cummax(input: Array, dim: Dim) -> None:
    if input.size:
        refuse_complex("cummax_cpu", input)


def cummin(input: Array, dim: Dim) -> None:
    if input.size:
        refuse_complex("cummin_cpu", input)


def logcumsumexp(input: Array, dim: Dim) -> None:
    require_floating("logcumsumexp_out_cpu", input)
