"""Moving pixels between channels and space."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Make channels into pixels: a larger image with fewer channels.

    (*, C * r ** 2, H, W) becomes (*, C, H * r, W * r), r = `upscale_factor`.

    >>> import pullback
    >>> pullback.nn.PixelShuffle(2)(pullback.ones(1, 8, 3, 3)).shape
    pullback.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Any:
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Make pixels into channels: a smaller image with more channels.

    (*, C, H * r, W * r) becomes (*, C * r ** 2, H, W), r = `downscale_factor`.

    >>> import pullback
    >>> pullback.nn.PixelUnshuffle(2)(pullback.ones(1, 2, 6, 6)).shape
    pullback.Size([1, 8, 3, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Any:
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
