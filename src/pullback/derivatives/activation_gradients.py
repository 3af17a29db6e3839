"""Rules of kernels/activation_gradients.py: the second derivatives of activation functions."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Scalar, Tensor, elementwise, general, tangent, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@elementwise(out=False, fresh=True)
def tanh_backward(grad: Tensor, output_grad: Tensor, output: Tensor) -> Pullback:
    return wrt(
        output_grad=F.tanh_backward(grad, F.conj(output)),
        output=F.conj(grad) * output_grad * F.conj(output) * -2,
    )


@tangent
def tanh_backward_tangent(
    output_grad: Tensor, output: Tensor, output_grad_tangent: Tensor, output_tangent: Tensor
) -> Tensor:
    return F.tanh_backward(output_grad_tangent, output) + output_grad * F.conj(output * output_tangent) * -2


@elementwise(out=False, fresh=True)
def sigmoid_backward(grad: Tensor, output_grad: Tensor, output: Tensor) -> Pullback:
    return wrt(
        output_grad=F.sigmoid_backward(grad, F.conj(output)),
        output=F.conj(grad) * output_grad * F.conj(1 - 2 * output),
    )


@tangent
def sigmoid_backward_tangent(
    output_grad: Tensor, output: Tensor, output_grad_tangent: Tensor, output_tangent: Tensor
) -> Tensor:
    return F.sigmoid_backward(output_grad_tangent, output) + output_grad * F.conj((1 - 2 * output) * output_tangent)


@elementwise(out=False, fresh=True)
def log_sigmoid_backward(grad: Tensor, output_grad: Tensor, input: Tensor) -> Pullback:
    return wrt(
        output_grad=F.log_sigmoid_backward(grad, input),
        input=-grad * output_grad * F.sigmoid_slope(input),
    )


@elementwise(out=False, fresh=True)
def softplus_backward(grad: Tensor, output_grad: Tensor, input: Tensor, beta: Scalar, threshold: Scalar) -> Pullback:
    return wrt(
        output_grad=F.softplus_backward(grad, input, beta, threshold),
        input=F.softplus_grad_again(grad * output_grad, input, beta, threshold),
    )


@elementwise(out=False, fresh=True)
def silu_backward(grad: Tensor, output_grad: Tensor, input: Tensor) -> Pullback:
    return wrt(
        output_grad=F.silu_backward(grad, F.conj(input)),
        input=grad * F.conj(output_grad * F.silu_bend(input)),
    )


@elementwise(out=False, fresh=True)
def mish_backward(grad: Tensor, output_grad: Tensor, input: Tensor) -> Pullback:
    return wrt(output_grad=F.mish_backward(grad, input), input=grad * output_grad * F.mish_bend(input))


@elementwise(out=False, fresh=True)
def gelu_backward(grad: Tensor, output_grad: Tensor, input: Tensor, approximate: str) -> Pullback:
    return wrt(
        output_grad=F.gelu_backward(grad, input, approximate),
        input=grad * output_grad * (F.gelu_bend(input) if approximate == "none" else F.gelu_tanh_bend(input)),
    )


@elementwise(out=False, fresh=True, exact=True)
def threshold_backward(grad: Tensor, output_grad: Tensor, input: Tensor, threshold: Scalar) -> Pullback:
    return wrt(output_grad=F.threshold_backward(grad, input, threshold), input=F.zeros_of(grad))


@elementwise(out=False, fresh=True, exact=True)
def hardshrink_backward(grad: Tensor, output_grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(output_grad=F.hardshrink_backward(grad, input, lambd), input=F.zeros_of(grad))


@elementwise(out=False, fresh=True, exact=True)
def softshrink_backward(grad: Tensor, output_grad: Tensor, input: Tensor, lambd: Scalar) -> Pullback:
    return wrt(output_grad=F.softshrink_backward(grad, input, lambd), input=F.zeros_of(grad))


@elementwise(out=False, fresh=True, exact=True)
def hardtanh_backward(grad: Tensor, output_grad: Tensor, input: Tensor, min_val: Scalar, max_val: Scalar) -> Pullback:
    return wrt(output_grad=F.hardtanh_backward(grad, input, min_val, max_val), input=F.zeros_of(grad))


@elementwise(out=False, fresh=True)
def hardsigmoid_backward(grad: Tensor, output_grad: Tensor, input: Tensor) -> Pullback:
    return wrt(output_grad=F.hardsigmoid_backward(grad, input), input=F.zeros_of(grad))


@elementwise(out=False, fresh=True)
def hardswish_backward(grad: Tensor, output_grad: Tensor, input: Tensor) -> Pullback:
    return wrt(
        output_grad=F.hardswish_backward(grad, input),
        input=F.keep_where(F.logical_and(input > -3, input < 3), grad * output_grad / 3),
    )


@elementwise(out=False, fresh=True)
def elu_backward(
    grad: Tensor, output_grad: Tensor, input: Tensor, alpha: Scalar, scale: Scalar, input_scale: Scalar
) -> Pullback:
    return wrt(
        output_grad=F.elu_backward(grad, input, alpha, scale, input_scale),
        input=F.elu_grad_again(grad * output_grad, input, alpha, scale, input_scale),
    )


@elementwise(out=False, fresh=True)
def leaky_relu_backward(grad: Tensor, output_grad: Tensor, input: Tensor, negative_slope: Scalar) -> Pullback:
    return wrt(output_grad=F.leaky_relu_backward(grad, input, negative_slope), input=F.zeros_of(grad))


@general(out=False, fresh=True)
def softmax_backward_data(grad: Tensor, output_grad: Tensor, output: Tensor, dim: Dim) -> Pullback:
    return wrt(
        output_grad=F.softmax_backward_data(grad, output, dim),
        output=F.softmax_grad_again(grad, output_grad, output, dim),
    )


@tangent
def softmax_backward_data_tangent(
    output_grad: Tensor, output: Tensor, dim: Dim, output_grad_tangent: Tensor, output_tangent: Tensor
) -> Tensor:
    return F.softmax_backward_data(output_grad_tangent, output, dim) + F.softmax_grad_push(
        output_grad, output, output_tangent, dim
    )


@general(out=False, fresh=True)
def log_softmax_backward_data(grad: Tensor, output_grad: Tensor, output: Tensor, dim: Dim) -> Pullback:
    return wrt(
        output_grad=F.log_softmax_push(grad, output, dim),
        output=-grad * F.exp(output) * F.sum(output_grad, (dim,), True),
    )


@tangent
def log_softmax_backward_data_tangent(
    output_grad: Tensor, output: Tensor, dim: Dim, output_grad_tangent: Tensor, output_tangent: Tensor
) -> Tensor:
    return F.log_softmax_backward_data(output_grad_tangent, output, dim) - output_tangent * F.exp(output) * F.sum(
        output_grad, (dim,), True
    )
