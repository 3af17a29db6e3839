"""Rules of kernels/interpolation.py and kernels/resampling.py: each is undone by the adjoint of its map."""

from __future__ import annotations

from typing import Any

from pullback.rules import F, Pullback, Shape, Tensor, linear, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@linear(out=False, structure="leading")
def resample(grad: Tensor, input: Tensor, sizes: Shape, method: str, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-len(sizes) :], method, align_corners, scales))


@linear(node="UpsampleBackwardBackward0", out=False, structure="leading")
def resample_back(grad: Tensor, input: Tensor, sizes: Shape, method: str, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample(grad, input.shape[-len(sizes) :], method, align_corners, scales))


@linear(
    aten="upsample_nearest1d.default(input, output_size, scales and float(scales[0]))",
    node="UpsampleNearest1DBackward0",
    out=False,
    structure="leading",
    backward="upsample_nearest1d_backward(grad, list(grad.shape[2:]), list(input.shape), scales and float(scales[0]))",
    gradient_nodes="(grad)",
)
def upsample_nearest1d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-1:], "nearest", False, scales))


@linear(node="UpsampleNearestExact1DBackward0", out=False, structure="leading", gradient_nodes="(grad)")
def upsample_nearest_exact1d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-1:], "nearest-exact", False, scales))


@linear(
    aten="upsample_nearest2d.default(input, output_size, scales and float(scales[0]), scales and float(scales[1]))",
    node="UpsampleNearest2DBackward0",
    out=False,
    structure="leading",
    backward="upsample_nearest2d_backward(grad, list(grad.shape[2:]), list(input.shape), "
    "scales and float(scales[0]), scales and float(scales[1]))",
    gradient_nodes="(grad)",
)
def upsample_nearest2d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "nearest", False, scales))


@linear(node="UpsampleNearestExact2DBackward0", out=False, structure="leading", gradient_nodes="(grad)")
def upsample_nearest_exact2d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "nearest-exact", False, scales))


@linear(
    aten="upsample_nearest3d.default(input, output_size, scales and float(scales[0]), "
    "scales and float(scales[1]), scales and float(scales[2]))",
    node="UpsampleNearest3DBackward0",
    out=False,
    structure="leading",
    backward="upsample_nearest3d_backward(grad, list(grad.shape[2:]), list(input.shape), "
    "scales and float(scales[0]), scales and float(scales[1]), scales and float(scales[2]))",
    gradient_nodes="(grad)",
)
def upsample_nearest3d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-3:], "nearest", False, scales))


@linear(node="UpsampleNearestExact3DBackward0", out=False, structure="leading", gradient_nodes="(grad)")
def upsample_nearest_exact3d(grad: Tensor, input: Tensor, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-3:], "nearest-exact", False, scales))


@linear(
    aten="upsample_linear1d.default(input, output_size, align_corners, scales and float(scales[0]))",
    node="UpsampleLinear1DBackward0",
    out=False,
    structure="leading",
    backward="upsample_linear1d_backward(grad, list(grad.shape[2:]), list(input.shape), align_corners, "
    "scales and float(scales[0]))",
    gradient_nodes="(grad)",
)
def upsample_linear1d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-1:], "linear", align_corners, scales))


@linear(
    aten="upsample_bilinear2d.default(input, output_size, align_corners, scales and float(scales[0]), "
    "scales and float(scales[1]))",
    node="UpsampleBilinear2DBackward0",
    out=False,
    structure="leading",
    backward="upsample_bilinear2d_backward(grad, list(grad.shape[2:]), list(input.shape), align_corners, "
    "scales and float(scales[0]), scales and float(scales[1]))",
    gradient_nodes="(grad)",
)
def upsample_bilinear2d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "linear", align_corners, scales))


@linear(
    aten="upsample_trilinear3d.default(input, output_size, align_corners, scales and float(scales[0]), "
    "scales and float(scales[1]), scales and float(scales[2]))",
    node="UpsampleTrilinear3DBackward0",
    out=False,
    structure="leading",
    backward="upsample_trilinear3d_backward(grad, list(grad.shape[2:]), list(input.shape), align_corners, "
    "scales and float(scales[0]), scales and float(scales[1]), scales and float(scales[2]))",
    gradient_nodes="(grad)",
)
def upsample_trilinear3d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-3:], "linear", align_corners, scales))


@linear(
    aten="upsample_bicubic2d.default(input, output_size, align_corners, scales and float(scales[0]), "
    "scales and float(scales[1]))",
    node="UpsampleBicubic2DBackward0",
    out=False,
    structure="leading",
    backward="upsample_bicubic2d_backward(grad, list(grad.shape[2:]), list(input.shape), align_corners, "
    "scales and float(scales[0]), scales and float(scales[1]))",
    gradient_nodes="(grad)",
)
def upsample_bicubic2d(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "cubic", align_corners, scales))


@linear(node="UpsampleBilinear2DAaBackward0", out=False, structure="leading", gradient_nodes="(grad)")
def upsample_bilinear2d_aa(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "linear-aa", align_corners, scales))


@linear(node="UpsampleBicubic2DAaBackward0", out=False, structure="leading", gradient_nodes="(grad)")
def upsample_bicubic2d_aa(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "cubic-aa", align_corners, scales))


@linear(node="UpsampleLanczos2DAaBackward0", out=False, structure="leading", gradient_nodes="(grad)")
def upsample_lanczos2d_aa(grad: Tensor, input: Tensor, align_corners: bool, scales: Any) -> Pullback:
    return wrt(input=F.resample_back(grad, input.shape[-2:], "lanczos-aa", align_corners, scales))
