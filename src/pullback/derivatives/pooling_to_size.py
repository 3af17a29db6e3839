"""Rules of kernels/pooling_to_size.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, linear, tangent, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    node="AdaptiveMaxPool2DBackward0",
    outputs=("values", "indices"),
    differentiable=(True, False),
    out=False,
    structure="leading",
    gradient_nodes="(grad, input)",
)
def adaptive_max_pool2d(grad: Tensor, input: Tensor, *, indices: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.put_in_planes(grad, indices, input.shape[-2:]), input))


@tangent
def adaptive_max_pool2d_tangent(input_tangent: Tensor, *, indices: Tensor) -> Tensor:
    return (F.take_from_planes(input_tangent, indices, 2), None)


@general(
    node="AdaptiveMaxPool3DBackward0",
    outputs=("values", "indices"),
    differentiable=(True, False),
    out=False,
    structure="leading",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def adaptive_max_pool3d(grad: Tensor, input: Tensor, *, indices: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.put_in_planes(grad, indices, input.shape[-3:]), input))


@tangent
def adaptive_max_pool3d_tangent(input_tangent: Tensor, *, indices: Tensor) -> Tensor:
    return (F.take_from_planes(input_tangent, indices, 3), None)


@general(
    node="FractionalMaxPool2DBackward0",
    outputs=("values", "indices"),
    differentiable=(True, False),
    out=False,
    structure="samples",
    shows="kernel_size output_size",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def fractional_max_pool2d(grad: Tensor, input: Tensor, *, indices: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.put_in_planes(grad, indices, input.shape[-2:]), input))


@tangent
def fractional_max_pool2d_tangent(input_tangent: Tensor, *, indices: Tensor) -> Tensor:
    return (F.take_from_planes(input_tangent, indices, 2), None)


@general(
    node="FractionalMaxPool3DBackward0",
    outputs=("values", "indices"),
    differentiable=(True, False),
    out=False,
    structure="samples",
    shows="kernel_size output_size",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def fractional_max_pool3d(grad: Tensor, input: Tensor, *, indices: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.put_in_planes(grad, indices, input.shape[-3:]), input))


@tangent
def fractional_max_pool3d_tangent(input_tangent: Tensor, *, indices: Tensor) -> Tensor:
    return (F.take_from_planes(input_tangent, indices, 3), None)


@linear(node="MaxUnpool2DBackward0", out=False, structure="leading", autocast="float32")
def max_unpool2d(grad: Tensor, input: Tensor, indices: Tensor) -> Pullback:
    return wrt(input=F.unpool_back(grad, indices, 2))


@linear(node="MaxUnpool3DBackward0", out=False, structure="leading", autocast="float32")
def max_unpool3d(grad: Tensor, input: Tensor, indices: Tensor) -> Pullback:
    return wrt(input=F.unpool_back(grad, indices, 3))


@linear(
    node="AdaptiveAvgPool2DBackward0",
    out=False,
    structure="leading",
    aten="_adaptive_avg_pool2d(input, output_size)",
    backward="_adaptive_avg_pool2d_backward(grad, input)",
    gradient_nodes="(grad, input)",
)
def adaptive_avg_pool2d(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.resample_back(grad, input.shape[-2:], "area", False, None), input))


@linear(
    node="AdaptiveAvgPool3DBackward0",
    out=False,
    structure="leading",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def adaptive_avg_pool3d(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.resample_back(grad, input.shape[-3:], "area", False, None), input))
