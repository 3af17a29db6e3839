"""Rules of kernels/activation.py. Subgradients at kinks are PyTorch's."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Scalar, Tensor, elementwise, general, wrt


@elementwise(
    in_place=True,
    out=False,
    backward="threshold_backward(grad, result, 0)",
    asks=True,
    functional="also in place",
    quantized=True,
    found="torch and method",
    takes_minus_inf=True,
)
def relu(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.threshold_backward(grad, result, 0))


@elementwise(
    in_place=True,
    promote="float",
    backward="sigmoid_backward(grad, result)",
    foreach=True,
    functional=True,
    masked=True,
    found="torch and method",
    takes_minus_inf=True,
)
def sigmoid(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.sigmoid_backward(grad, result))


@elementwise(
    node="LogSigmoidBackward0",
    aten="log_sigmoid_forward(input)",
    backward="log_sigmoid_backward(grad, input, exp_of_minus_abs(input, grad))",
    out_dtype="scalar_type",
    profiled="log_sigmoid",
    out_resized="silently",
    functional=True,
    written_in="c",
)
def logsigmoid(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.log_sigmoid_backward(grad, input))


@elementwise(in_place=True, backward="silu_backward(grad, input)", functional=True)
def silu(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.silu_grad(grad, F.conj(input)))


@elementwise(in_place=True, backward="mish_backward(grad, input)", functional=True)
def mish(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.mish_grad(grad, input))


@elementwise(
    in_place=True,
    backward="gelu_backward(grad, input, approximate=approximate)",
    out_dtype="found",
    functional=True,
    written_in="c",
)
def gelu(grad: Tensor, input: Tensor, approximate: str) -> Pullback:
    return wrt(input=F.gelu_backward(grad, input, approximate))


@elementwise(
    backward="softplus_backward(grad, input, beta, threshold)", out_dtype="found", functional=True, written_in="c"
)
def softplus(grad: Tensor, input: Tensor, beta: Scalar, threshold: Scalar) -> Pullback:
    return wrt(input=F.softplus_backward(grad, input, beta, threshold))


@elementwise(backward="softshrink_backward(grad, input, lambd)", out_dtype="found", functional=True, written_in="c")
def softshrink(grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(input=F.softshrink_backward(grad, input, lambd))


@elementwise(
    backward="hardshrink_backward(grad, input, lambd)",
    out_dtype="found",
    functional=True,
    written_in="c",
    found="torch and method",
)
def hardshrink(grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(input=F.hardshrink_backward(grad, input, lambd))


@elementwise(in_place=True, backward="hardtanh_backward(grad, input, min_val, max_val)", functional="also in place")
def hardtanh(grad: Tensor, input: Tensor, min_val: Scalar, max_val: Scalar) -> Pullback:
    return wrt(input=F.hardtanh_backward(grad, input, min_val, max_val))


@elementwise(in_place=True, backward="hardsigmoid_backward(grad, input)", functional=True)
def hardsigmoid(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.hardsigmoid_backward(grad, input))


@elementwise(in_place=True, backward="hardswish_backward(grad, input)", functional=True)
def hardswish(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.hardswish_backward(grad, input))


@elementwise(
    in_place=True,
    backward="elu_backward(grad, alpha, scale, input_scale, False, input)",
    functional=True,
    renumbered=True,
)
def elu(grad: Tensor, input: Tensor, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Pullback:
    return wrt(input=F.elu_backward(grad, input, alpha, scale, input_scale))


@elementwise(in_place=True, functional=True, renumbered=True)
def celu(grad: Tensor, input: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=F.elu_backward(grad, input, alpha, 1, 1 / alpha))


@elementwise(
    in_place=True,
    backward="leaky_relu_backward(grad, input, negative_slope, False)",
    functional="also in place",
    renumbered=True,
)
def leaky_relu(grad: Tensor, input: Tensor, negative_slope: Scalar) -> Pullback:
    return wrt(input=F.leaky_relu_backward(grad, input, negative_slope))


@elementwise(
    public="prelu",
    aten="_prelu_kernel(input, weight)",
    backward="_prelu_kernel_backward(grad, input, weight)",
    gradient_nodes="(grad, input, weight)",
)
def prelu_kernel(grad: Tensor, input: Tensor, weight: Tensor) -> Pullback:
    return wrt(
        input=F.depending_on(F.where(input > 0, grad, weight * grad), input),
        weight=F.drop_where(input > 0, input * grad),
    )


@elementwise(in_place=True, public="rrelu", loops=False, gradient_nodes="(grad, input)", renumbered=True)
def rrelu_with_noise(grad: Tensor, input: Tensor, noise: Tensor) -> Pullback:
    return wrt(input=F.depending_on(grad * noise, input))


@elementwise(in_place=True, backward="threshold_backward(grad, input, threshold)", functional=True, renumbered=True)
def threshold(grad: Tensor, input: Tensor, threshold: Scalar) -> Pullback:
    return wrt(input=F.threshold_backward(grad, input, threshold))


@general(
    out=False, backward="glu_backward(grad, input, dim)", functional=True, loops=False, gradient_nodes="(grad, input)"
)
def glu(grad: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.glu_grad(grad, input, dim))


@elementwise(
    in_place=True,
    promote="float",
    backward="logit_backward(grad, input, eps)",
    masked=True,
    found="torch and method",
    found_in_place="torch and method",
    domain="0 1",
    infinite="value",
)
def logit(grad: Tensor, input: Tensor, eps: float) -> Pullback:
    return wrt(input=F.logit_grad(grad, input, eps))
