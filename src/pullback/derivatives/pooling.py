"""Rules of kernels/pooling.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, general, linear, tangent, wrt


@general(
    node="MaxPool2DWithIndicesBackward0",
    outputs=("values", "indices"),
    differentiable=(True, False),
    out=False,
    structure="leading",
    backward="max_pool2d_with_indices_backward(grad, input, kernel_size, stride, padding, dilation, ceil_mode, indices)",
    gradient_nodes="(grad, input)",
)
def max_pool2d_with_indices(grad: Tensor, input: Tensor, *, indices: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.put_in_planes(grad, indices, input.shape[-2:]), input))


@tangent
def max_pool2d_with_indices_tangent(input_tangent: Tensor, *, indices: Tensor) -> Tensor:
    return (F.take_from_planes(input_tangent, indices, 2), None)


@general(
    node="MaxPool3DWithIndicesBackward0",
    outputs=("values", "indices"),
    differentiable=(True, False),
    out=False,
    structure="leading",
    shows="kernel_size stride padding dilation ceil_mode",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def max_pool3d_with_indices(grad: Tensor, input: Tensor, *, indices: Tensor) -> Pullback:
    return wrt(input=F.depending_on(F.put_in_planes(grad, indices, input.shape[-3:]), input))


@tangent
def max_pool3d_with_indices_tangent(input_tangent: Tensor, *, indices: Tensor) -> Tensor:
    return (F.take_from_planes(input_tangent, indices, 3), None)


@linear(node="MaxPool2DWithIndicesBackwardBackward0", out=False, structure="leading")
def put_in_planes(grad: Tensor, input: Tensor, indices: Tensor, sizes: Shape) -> Pullback:
    return wrt(input=F.take_from_planes(grad, indices, len(sizes)))


@linear(out=False, structure="leading")
def take_from_planes(grad: Tensor, input: Tensor, indices: Tensor, dims: int) -> Pullback:
    return wrt(input=F.put_in_planes(grad, indices, input.shape[-dims:]))


@linear(
    node="AvgPool2DBackward0",
    out=False,
    structure="leading",
    backward="avg_pool2d_backward(grad, input, kernel_size, stride, padding, ceil_mode, count_include_pad, "
    "divisor_override)",
    out_dtype="c_types",
    functional=True,
    written_in="c",
    gradient_nodes="(grad, input)",
)
def avg_pool2d(
    grad: Tensor, input: Tensor, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Pullback:  # fmt: skip
    return wrt(
        input=F.depending_on(
            F.avg_pool_back(
                grad, input.shape[-2:], kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            ),
            input,
        )
    )


@linear(
    node="AvgPool3DBackward0",
    out=False,
    structure="leading",
    autocast="float32",
    out_dtype="c_types",
    functional=True,
    written_in="c",
    gradient_nodes="(grad, input)",
)
def avg_pool3d(
    grad: Tensor, input: Tensor, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Pullback:  # fmt: skip
    return wrt(
        input=F.depending_on(
            F.avg_pool_back(
                grad, input.shape[-3:], kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            ),
            input,
        )
    )


@linear(node="AvgPool2DBackwardBackward0", out=False, structure="leading")
def avg_pool_back(
    grad: Tensor, input: Tensor, kernel_size: Shape, stride: Shape, padding: Shape, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Pullback:  # fmt: skip
    return wrt(input=F.avg_pool_nd(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override))
