"""What the kernels of kernels/grid_sampling.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.typing import Array


def grid_sampler_2d(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> None:
    _check_grid(input, grid, 2)


def grid_sampler_3d(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> None:
    _check_grid(input, grid, 3)
    if interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def _check_grid(input: Array, grid: Array, dims: int) -> None:
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type_name(input.dtype)} but found {scalar_type_name(grid.dtype)}: the grid must "
            "have the dtype of the input"
        )
    sizes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.ndim != dims + 2 or grid.ndim != input.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, but got {sizes}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}")
    if grid.shape[-1] != dims:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {dims} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(input.shape)}"
        )
