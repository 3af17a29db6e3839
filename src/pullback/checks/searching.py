"""What the kernels of kernels/searching.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def _check_uniquable(input: Array, dim: int) -> None:
    """Refuse slices without elements: they are all equal, and there may be none."""
    empty = [d for d, size in enumerate(input.shape) if size == 0]
    if len(empty) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if empty and empty != [dim]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")


def unique(
    input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> None:
    refuse_kinds(input, "c", "unique")


def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> None:
    refuse_kinds(input, "c", "unique" if dim is None else "unique_dim")
    if dim is not None:
        _check_uniquable(input, dim)


def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if input.dtype.kind not in "fV":
        raise NotImplementedError(f'"histogram_cpu" not implemented for {scalar_type_name(input.dtype)!r}')
