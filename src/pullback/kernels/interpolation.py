"""The resizing operations under PyTorch's names; `resampling.py` does the work."""

from __future__ import annotations

from pullback.kernels.resampling import resample
from pullback.native import by_device
from pullback.typing import Array, Shape

_Scales = tuple[float | None, ...] | None


@by_device
def upsample_nearest1d(input: Array, output_size: Shape, scales: _Scales = None) -> Array:
    """Resize the last dimension, each place taking the element before it."""
    return resample(input, output_size, "nearest", False, scales)


@by_device
def upsample_nearest_exact1d(input: Array, output_size: Shape, scales: _Scales = None) -> Array:
    """Resize the last dimension, each place taking the nearest element."""
    return resample(input, output_size, "nearest-exact", False, scales)


@by_device
def upsample_nearest2d(input: Array, output_size: Shape, scales: _Scales = None) -> Array:
    """Resize the last two dimensions, each place taking the element before it."""
    return resample(input, output_size, "nearest", False, scales)


@by_device
def upsample_nearest_exact2d(input: Array, output_size: Shape, scales: _Scales = None) -> Array:
    """Resize the last two dimensions, each place taking the nearest element."""
    return resample(input, output_size, "nearest-exact", False, scales)


@by_device
def upsample_nearest3d(input: Array, output_size: Shape, scales: _Scales = None) -> Array:
    """Resize the last three dimensions, each place taking the element before it."""
    return resample(input, output_size, "nearest", False, scales)


@by_device
def upsample_nearest_exact3d(input: Array, output_size: Shape, scales: _Scales = None) -> Array:
    """Resize the last three dimensions, each place taking the nearest element."""
    return resample(input, output_size, "nearest-exact", False, scales)


@by_device
def upsample_linear1d(input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None) -> Array:
    """Resize the last dimension by linear interpolation."""
    return resample(input, output_size, "linear", align_corners, scales)


@by_device
def upsample_bilinear2d(input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None) -> Array:
    """Resize the last two dimensions by linear interpolation."""
    return resample(input, output_size, "linear", align_corners, scales)


@by_device
def upsample_trilinear3d(
    input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None
) -> Array:
    """Resize the last three dimensions by linear interpolation."""
    return resample(input, output_size, "linear", align_corners, scales)


@by_device
def upsample_bicubic2d(input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None) -> Array:
    """Resize the last two dimensions by cubic interpolation."""
    return resample(input, output_size, "cubic", align_corners, scales)


@by_device
def upsample_bilinear2d_aa(
    input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None
) -> Array:
    """Resize the last two dimensions by a triangle filter that does not alias."""
    return resample(input, output_size, "linear-aa", align_corners, scales)


@by_device
def upsample_bicubic2d_aa(
    input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None
) -> Array:
    """Resize the last two dimensions by a cubic filter that does not alias."""
    return resample(input, output_size, "cubic-aa", align_corners, scales)


@by_device
def upsample_lanczos2d_aa(
    input: Array, output_size: Shape, align_corners: bool = False, scales: _Scales = None
) -> Array:
    """Resize the last two dimensions by a windowed sinc that does not alias."""
    return resample(input, output_size, "lanczos-aa", align_corners, scales)
