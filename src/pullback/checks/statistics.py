"""What the kernels of kernels/statistics.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import is_float_or_complex
from pullback.typing import Array, Dims


def var(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> None:
    _refuse_whole_numbers("std and var", input)


def std(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> None:
    _refuse_whole_numbers("std and var", input)


def var_mean(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> None:
    _refuse_whole_numbers("var_mean", input)


def std_mean(input: Array, dim: Dims = None, correction: float = 1, keepdim: bool = False) -> None:
    _refuse_whole_numbers("std_mean", input)


def _refuse_whole_numbers(names: str, input: Array) -> None:
    if not is_float_or_complex(input.dtype):
        raise RuntimeError(f"{names} only support floating point and complex dtypes")
