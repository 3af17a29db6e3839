"""Rules of kernels/activation.py. Subgradients at kinks are PyTorch's."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Scalar, Tensor, elementwise, general, wrt


@elementwise(in_place=True, out=False)
def relu(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.relu_grad(grad, result))


@elementwise(in_place=True, promote="float")
def sigmoid(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj((1 - result) * result))


@elementwise(node="LogSigmoidBackward0")
def logsigmoid(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.small_sigmoid(-input))


@elementwise(in_place=True)
def silu(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.silu_slope(input)))


@elementwise(in_place=True)
def mish(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.mish_slope(input))


@elementwise(in_place=True)
def gelu(grad: Tensor, input: Tensor, approximate: str) -> Pullback:
    return wrt(input=grad * (F.gelu_slope(input) if approximate == "none" else F.gelu_tanh_slope(input)))


@elementwise
def softplus(grad: Tensor, input: Tensor, beta: Scalar, threshold: Scalar) -> Pullback:
    return wrt(input=F.where(input * beta > threshold, grad, grad * F.small_sigmoid(input * beta)))


@elementwise
def softshrink(grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.abs(input) > lambd, grad), input))


@elementwise
def hardshrink(grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.abs(input) > lambd, grad), input))


@elementwise(in_place=True)
def hardtanh(grad: Tensor, input: Tensor, min_val: Scalar, max_val: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.logical_and(input > min_val, input < max_val), grad), input))


@elementwise(in_place=True)
def hardsigmoid(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.tied_to(F.keep_where(F.logical_and(input > -3, input < 3), grad / 6), input))


@elementwise(in_place=True)
def hardswish(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.drop_where(input <= -3, F.where(input < 3, grad * (input / 3 + 0.5), grad)))


@elementwise(in_place=True)
def elu(grad: Tensor, input: Tensor, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Pullback:
    return wrt(input=F.elu_grad(grad, input, alpha, scale, input_scale))


@elementwise(in_place=True)
def celu(grad: Tensor, input: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=F.elu_grad(grad, input, alpha, 1, 1 / alpha))


@elementwise(in_place=True)
def leaky_relu(grad: Tensor, input: Tensor, negative_slope: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.where(input > 0, grad, F.scaled_by(grad, negative_slope)), input))


@elementwise(public="prelu")
def prelu_kernel(grad: Tensor, input: Tensor, weight: Tensor) -> Pullback:
    return wrt(
        input=F.where(input > 0, grad, weight * grad),
        weight=F.drop_where(input > 0, input * grad),
    )


@elementwise(in_place=True, public="rrelu")
def rrelu_with_noise(grad: Tensor, input: Tensor, noise: Tensor) -> Pullback:
    return wrt(input=F.tied_to(grad * noise, input))


@elementwise(in_place=True)
def threshold(grad: Tensor, input: Tensor, threshold: Scalar) -> Pullback:
    return wrt(input=F.tied_to(F.drop_where(input <= threshold, grad), input))


@general(out=False)
def glu(grad: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.glu_grad(grad, input, dim))


@elementwise(in_place=True, promote="float")
def logit(grad: Tensor, input: Tensor, eps: float) -> Pullback:
    return wrt(input=F.logit_grad(grad, input, eps))
