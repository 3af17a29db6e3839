"""Sampling at points under PyTorch's top-level name."""

from __future__ import annotations

import pullback.generated as G
from pullback.facts import declare
from pullback.tensor.tensor import Tensor


@declare(autocast="float32", found="torch")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The values of (N, C, ...) at points. Modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    sampler = G.grid_sampler_3d if input._array.ndim > 4 else G.grid_sampler_2d
    return sampler(input, grid, interpolation_mode, padding_mode, align_corners)
