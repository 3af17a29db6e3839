"""What the kernels of kernels/rearranging.py ask of their arguments."""

from __future__ import annotations

from pullback.typing import Array


def _check_matrix(name: str, input: Array) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def tril(input: Array, diagonal: int = 0) -> None:
    _check_matrix("tril", input)


def triu(input: Array, diagonal: int = 0) -> None:
    _check_matrix("triu", input)


def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> None:
    if (dim1 - dim2) % (input.ndim + 1) == 0:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
