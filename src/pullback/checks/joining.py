"""What the kernels of kernels/joining.py ask of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.checks import after_failure
from pullback.typing import Array, Dim, Shape


def _require_dimensions(input: Array) -> None:
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")


def split(input: Array, split_size: int, dim: Dim = 0) -> None:
    _require_dimensions(input)
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0 and (extent := input.shape[dim]):
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {extent}")


def split_with_sizes(input: Array, split_sizes: Shape, dim: Dim = 0) -> None:
    _require_dimensions(input)
    if any(size < 0 for size in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != input.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[dim]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )


def split_back(grads: Sequence[Array | None], shape: Shape, dtype: Any, split_size: int, dim: int) -> None:
    if split_size and len(grads) != max(1, -(-shape[dim] // split_size)):
        raise ValueError(f"{len(grads)} gradients for {shape[dim]} elements in parts of {split_size}")


@after_failure
def unbind(input: Array, dim: Dim = 0) -> None:
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
