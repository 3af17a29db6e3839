"""Resizing of sequences, images and volumes."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resize to a given size, or by a given factor.

    (N, C, *) of one to three sizes becomes (N, C, *size), or sizes times `scale_factor`; `mode` is "nearest", "linear",
    "bilinear", "bicubic" or "trilinear".

    >>> import pullback
    >>> pullback.nn.Upsample(scale_factor=2)(pullback.tensor([[[1., 2.]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Any:
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        what = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize images by repeating the nearest pixel.

    Either `size` or `scale_factor`: (N, C, H, W) becomes (N, C, *size).

    >>> import pullback
    >>> pullback.nn.UpsamplingNearest2d(scale_factor=2)(pullback.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images by bilinear interpolation that keeps the corners.

    Either `size` or `scale_factor`: (N, C, H, W) becomes (N, C, *size). `Upsample` with mode "bilinear" and aligned corners.

    >>> import pullback
    >>> pullback.nn.UpsamplingBilinear2d(size=(1, 3))(pullback.tensor([[[[0.0, 2.0]]]]))
    tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
