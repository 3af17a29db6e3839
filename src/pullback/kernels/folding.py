"""Rearranging between blocks and images: unfolding windows to columns, and channels to pixels."""

from __future__ import annotations

import math

import numpy as np

from pullback.checks import checked
from pullback.kernels.windows import add_windows, pad_with, window_counts, window_view
from pullback.native import by_device, native
from pullback.typing import Array, Shape


@native
@checked
def im2col(input: Array, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Array:
    """The windows of (N, C, H, W) or (C, H, W) as columns: (N, C * kernel, windows)."""
    counts = window_counts(input.shape[-2:], kernel_size, stride, padding, dilation)
    windows = window_view(pad_with(input, padding), kernel_size, stride, dilation, counts)
    return windows.reshape(*input.shape[:-3], input.shape[-3] * math.prod(kernel_size), math.prod(counts))


@native
def col2im(
    input: Array, output_size: Shape, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape
) -> Array:
    """The adjoint of `im2col`: columns added up where their windows lie in an image of `output_size`."""
    counts = window_counts(output_size, kernel_size, stride, padding, dilation)
    channels = input.shape[-2] // math.prod(kernel_size)
    windows = input.reshape(*input.shape[:-2], channels, *kernel_size, *counts)
    sizes = tuple([n + 2 * p for n, p in zip(output_size, padding, strict=True)])
    total = add_windows(windows, sizes, stride, dilation)
    crop = tuple([slice(p, p + n) for p, n in zip(padding, output_size, strict=True)])
    return np.ascontiguousarray(total[(..., *crop)])


@by_device
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """(*, C * r**2, H, W) as (*, C, H * r, W * r).

    r is `upscale_factor`. The r**2 channels that belong together become squares of r by r pixels: y[c, h * r + i, w * r
    + j] = input[c * r**2 + i * r + j, h, w].
    """
    r = upscale_factor
    *lead, channels, height, width = input.shape
    blocks = input.reshape(math.prod(lead), channels // (r * r), r, r, height, width)
    dealt = np.array(blocks.transpose(0, 1, 4, 2, 5, 3), order="C")
    return dealt.reshape(*lead, channels // (r * r), height * r, width * r)


@by_device
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """The inverse of `pixel_shuffle`.

    With r the factor, (..., C, H * r, W * r) becomes (..., C * r * r, H, W).

    >>> import pullback
    >>> pullback.nn.functional.pixel_unshuffle(pullback.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    *lead, channels, height, width = input.shape
    blocks = input.reshape(math.prod(lead), channels, height // r, r, width // r, r)
    dealt = np.array(blocks.transpose(0, 1, 3, 5, 2, 4), order="C")
    return dealt.reshape(*lead, channels * r * r, height // r, width // r)


def channel_shuffle(input: Array, groups: int) -> Array:
    """Deal the channels of `groups` groups out like cards: one of each group in turn.

    (N, C, ...) keeps its shape; C is a multiple of `groups`.

    >>> import pullback
    >>> pullback.nn.functional.channel_shuffle(pullback.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    count, channels, first, *rest = input.shape
    grouped = input.reshape(count, groups, channels // groups, first * math.prod(rest))
    return grouped.transpose(0, 2, 1, 3).reshape(input.shape)
