"""Rules of kernels/activation.py. Subgradients at kinks are PyTorch's."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Scalar, Tensor, elementwise, general, wrt


@elementwise(in_place=True, out=False, backward="threshold_backward(grad, result, 0)")
def relu(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.relu_grad(grad, result))


@elementwise(in_place=True, promote="float", backward="sigmoid_backward(grad, result)")
def sigmoid(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj((1 - result) * result))


@elementwise(
    node="LogSigmoidBackward0",
    aten="log_sigmoid_forward(input)",
    backward="log_sigmoid_backward(grad, input, exp(neg(abs(input))))",
)
def logsigmoid(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.small_sigmoid(-input))


@elementwise(in_place=True, backward="silu_backward(grad, input)")
def silu(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.silu_slope(input)))


@elementwise(in_place=True, backward="mish_backward(grad, input)")
def mish(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.mish_slope(input))


@elementwise(in_place=True, backward="gelu_backward(grad, input, approximate=approximate)")
def gelu(grad: Tensor, input: Tensor, approximate: str) -> Pullback:
    return wrt(input=grad * (F.gelu_slope(input) if approximate == "none" else F.gelu_tanh_slope(input)))


@elementwise(backward="softplus_backward(grad, input, beta, threshold)")
def softplus(grad: Tensor, input: Tensor, beta: Scalar, threshold: Scalar) -> Pullback:
    return wrt(input=F.where(input * beta > threshold, grad, grad * F.small_sigmoid(input * beta)))


@elementwise(backward="softshrink_backward(grad, input, lambd)")
def softshrink(grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.abs(input) > lambd, grad), input))


@elementwise(backward="hardshrink_backward(grad, input, lambd)")
def hardshrink(grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.abs(input) > lambd, grad), input))


@elementwise(in_place=True, backward="hardtanh_backward(grad, input, min_val, max_val)")
def hardtanh(grad: Tensor, input: Tensor, min_val: Scalar, max_val: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.logical_and(input > min_val, input < max_val), grad), input))


@elementwise(in_place=True, backward="hardsigmoid_backward(grad, input)")
def hardsigmoid(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.logical_and(input > -3, input < 3), grad / 6), input))


@elementwise(in_place=True, backward="hardswish_backward(grad, input)")
def hardswish(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.drop_where(input <= -3, F.where(input < 3, grad * (input / 3 + 0.5), grad)))


@elementwise(in_place=True, backward="elu_backward(grad, alpha, scale, input_scale, False, input)")
def elu(grad: Tensor, input: Tensor, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Pullback:
    return wrt(input=F.elu_grad(grad, input, alpha, scale, input_scale))


@elementwise(in_place=True)
def celu(grad: Tensor, input: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=F.elu_grad(grad, input, alpha, 1, 1 / alpha))


@elementwise(in_place=True, backward="leaky_relu_backward(grad, input, negative_slope, False)")
def leaky_relu(grad: Tensor, input: Tensor, negative_slope: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.where(input > 0, grad, F.scaled_by(grad, negative_slope)), input))


@elementwise(
    public="prelu", aten="_prelu_kernel(input, weight)", backward="_prelu_kernel_backward(grad, input, weight)"
)
def prelu_kernel(grad: Tensor, input: Tensor, weight: Tensor) -> Pullback:
    return wrt(
        input=F.where(input > 0, grad, weight * grad),
        weight=F.drop_where(input > 0, input * grad),
    )


@elementwise(in_place=True, public="rrelu")
def rrelu_with_noise(grad: Tensor, input: Tensor, noise: Tensor) -> Pullback:
    return wrt(input=F.tied_to(grad * noise, input))


@elementwise(in_place=True, backward="threshold_backward(grad, input, threshold)")
def threshold(grad: Tensor, input: Tensor, threshold: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.drop_where(input <= threshold, grad), input))


@general(out=False, backward="glu_backward(grad, input, dim)")
def glu(grad: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.glu_grad(grad, input, dim))


@elementwise(in_place=True, promote="float", backward="logit_backward(grad, input, eps)")
def logit(grad: Tensor, input: Tensor, eps: float) -> Pullback:
    return wrt(input=F.logit_grad(grad, input, eps))
