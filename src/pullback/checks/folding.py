"""What the kernels of kernels/folding.py ask of their arguments."""

from __future__ import annotations

from pullback.checks import after_failure
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Shape


def im2col(input: Array, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> None:
    refuse_kinds(input, "iu", "im2col_out_cpu")


@after_failure
def pixel_shuffle(input: Array, upscale_factor: int) -> None:
    r = upscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    channels = input.shape[-3]
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r * r}"
        )


@after_failure
def pixel_unshuffle(input: Array, downscale_factor: int) -> None:
    r = downscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, dim, size in (("height", -2, input.shape[-2]), ("width", -1, input.shape[-1])):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is not "
                f"divisible by {r}"
            )


@after_failure
def channel_shuffle(input: Array, groups: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = input.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
