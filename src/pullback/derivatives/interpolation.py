"""Rules of kernels/interpolation.py and kernels/resampling.py: each is undone by the adjoint of its map."""

from __future__ import annotations

from typing import Any

from pullback.rules import F, Pullback, Shape, Tensor, linear, wrt


@linear(out=False, structure="leading")
def resample(grad: Tensor, input: Tensor, sizes: Shape, method: str, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-len(sizes) :], method, align_corners, scales))


@linear(node="UpsampleBackwardBackward0", out=False, structure="leading")
def resample_back(grad: Tensor, input: Tensor, sizes: Shape, method: str, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample(grad, input.shape[-len(sizes) :], method, align_corners, scales))


@linear(
    node="AdaptiveAvgPool2DBackward0",
    out=False,
    structure="leading",
    aten="_adaptive_avg_pool2d(input, output_size)",
    backward="_adaptive_avg_pool2d_backward(grad, input)",
)
def adaptive_avg_pool2d(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.tied_to(F.resample_back(grad, input.shape[-2:], "area", False, None), input))


@linear(node="AdaptiveAvgPool3DBackward0", out=False, structure="leading")
def adaptive_avg_pool3d(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.tied_to(F.resample_back(grad, input.shape[-3:], "area", False, None), input))


@linear(node="UpsampleNearest1DBackward0", out=False, structure="leading")
def upsample_nearest1d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-1:], "nearest", False, scales))


@linear(node="UpsampleNearestExact1DBackward0", out=False, structure="leading")
def upsample_nearest_exact1d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-1:], "nearest-exact", False, scales))


@linear(node="UpsampleNearest2DBackward0", out=False, structure="leading")
def upsample_nearest2d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "nearest", False, scales))


@linear(node="UpsampleNearestExact2DBackward0", out=False, structure="leading")
def upsample_nearest_exact2d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "nearest-exact", False, scales))


@linear(node="UpsampleNearest3DBackward0", out=False, structure="leading")
def upsample_nearest3d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-3:], "nearest", False, scales))


@linear(node="UpsampleNearestExact3DBackward0", out=False, structure="leading")
def upsample_nearest_exact3d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-3:], "nearest-exact", False, scales))


@linear(node="UpsampleLinear1DBackward0", out=False, structure="leading")
def upsample_linear1d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-1:], "linear", align_corners, scales))


@linear(node="UpsampleBilinear2DBackward0", out=False, structure="leading")
def upsample_bilinear2d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "linear", align_corners, scales))


@linear(node="UpsampleTrilinear3DBackward0", out=False, structure="leading")
def upsample_trilinear3d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-3:], "linear", align_corners, scales))


@linear(node="UpsampleBicubic2DBackward0", out=False, structure="leading")
def upsample_bicubic2d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "cubic", align_corners, scales))


@linear(node="UpsampleBilinear2DAaBackward0", out=False, structure="leading")
def upsample_bilinear2d_aa(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "linear-aa", align_corners, scales))


@linear(node="UpsampleBicubic2DAaBackward0", out=False, structure="leading")
def upsample_bicubic2d_aa(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "cubic-aa", align_corners, scales))


@linear(node="UpsampleLanczos2DAaBackward0", out=False, structure="leading")
def upsample_lanczos2d_aa(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "lanczos-aa", align_corners, scales))
