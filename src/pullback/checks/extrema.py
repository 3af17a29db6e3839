"""What the kernels of kernels/extrema.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_complex
from pullback.checks.shapes import require_elements
from pullback.typing import Array, Dim, Dims


def max_all(input: Array) -> None:
    require_elements("max", input, None)
    refuse_complex("max_all", input)


def min_all(input: Array) -> None:
    require_elements("min", input, None)
    refuse_complex("min_all", input)


def amax(input: Array, dim: Dims = (), keepdim: bool = False) -> None:
    require_elements("amax", input, dim)
    if input.size:  # there is no kernel to ask for a result without elements
        refuse_complex("max_values_cpu", input)


def amin(input: Array, dim: Dims = (), keepdim: bool = False) -> None:
    require_elements("amin", input, dim)
    if input.size:  # there is no kernel to ask for a result without elements
        refuse_complex("min_values_cpu", input)


def aminmax(input: Array, *, dim: Dim | None = None, keepdim: bool = False) -> None:
    axes = None if dim is None else (dim,)
    if input.size == 0 and dim is None:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    require_elements("aminmax", input, axes)
    refuse_complex("aminmax_cpu", input)


def max_dim(input: Array, dim: Dim, keepdim: bool = False) -> None:
    _check_choice("max", input, dim)


def min_dim(input: Array, dim: Dim, keepdim: bool = False) -> None:
    _check_choice("min", input, dim)


def _check_choice(name: str, input: Array, dim: Dim) -> None:
    require_elements(name, input, (dim,))
    if input.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")


def argmax(input: Array, dim: Dim | None = None, keepdim: bool = False) -> None:
    _check_place("argmax", input, dim)


def argmin(input: Array, dim: Dim | None = None, keepdim: bool = False) -> None:
    _check_place("argmin", input, dim)


def _check_place(name: str, input: Array, dim: Dim | None) -> None:
    if input.dtype.kind in "bc":
        raise RuntimeError(f"{name}(): does not support {'bool' if input.dtype == bool else 'complex'} input")
    if input.size == 0 and dim is None:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    require_elements(name, input, None if dim is None else (dim,))
