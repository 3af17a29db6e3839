"""What the kernels of kernels/reductions.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.typing import Array, Dims, DType


def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> None:
    if input.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.kind == "c":
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{scalar_type_name(dtype)}'")


def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> None:
    wanted = input.dtype if dtype is None else dtype
    if not is_float_or_complex(wanted):
        source = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_type_name(wanted)}"
        )
