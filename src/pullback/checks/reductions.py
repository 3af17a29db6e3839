"""What the kernels of kernels/reductions.py ask of their arguments."""

from __future__ import annotations

from pullback.typing import Array, Dims, DType


def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> None:
    if input.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
