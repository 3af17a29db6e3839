"""Rules of kernels/convolutions.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, general, multilinear, tangent, wrt


@general(
    out=False,
    backward="convolution_backward(grad, input, weight, [weight.shape[0]] if output_mask[2] else [0], stride, padding, "
    "dilation, transposed, output_padding, groups, output_mask)",
    gradient_nodes="(grad, input, weight)",
)
def convolution(
    grad: Tensor, input: Tensor, weight: Tensor, bias: Tensor, stride: Shape, padding: Shape, dilation: Shape,
    transposed: bool, groups: int,
) -> Pullback:  # fmt: skip
    return wrt(
        input=F.convolution_back(grad, weight, input.shape, stride, padding, dilation, transposed, groups),
        weight=F.convolution_weight_back(grad, input, weight.shape, stride, padding, dilation, transposed, groups),
        bias=F.depending_on(F.depending_on(F.sum_over_channels(grad), input), weight),
    )


@tangent
def convolution_tangent(
    input: Tensor, weight: Tensor, input_tangent: Tensor, weight_tangent: Tensor, bias_tangent: Tensor, stride: Shape,
    padding: Shape, dilation: Shape, transposed: bool, output_padding: Shape, groups: int,
) -> Tensor:  # fmt: skip
    return F.convolution(
        input_tangent, weight, None, stride, padding, dilation, transposed, output_padding, groups
    ) + F.convolution(
        input, weight_tangent, bias_tangent, stride, padding, dilation, transposed, output_padding, groups
    )


@multilinear(node="ConvolutionBackwardBackward0", out=False)
def convolution_grad_weight(
    grad: Tensor, input: Tensor, output_grad: Tensor, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Pullback:
    return wrt(
        input=F.convolution_back(output_grad, grad, input.shape, stride, padding, dilation, False, groups),
        output_grad=F.leading_part(
            F.convolution(input, grad, None, stride, padding, dilation, False, stride, groups), output_grad.shape
        ),
    )
