"""Rules of kernels/trigonometric.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, wrt


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def sin(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.cos(input)))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def cos(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(-F.sin(input)))


@elementwise(
    in_place=True,
    promote="float",
    backward="wrt(input=mul(grad, conj(add(pow(result, 2), 1))))",
    foreach=True,
    found="torch and method",
)
def tan(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(1 + result * result))


@elementwise(
    in_place=True,
    promote="float",
    backward="wrt(input=mul(grad, conj(rsqrt(add(mul(neg(input), input), 1)))))",
    foreach=True,
    found="torch and method",
)
def asin(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.rsqrt((1 - input) * (1 + input))))


@elementwise(
    in_place=True,
    promote="float",
    backward="wrt(input=mul(grad, conj(neg(rsqrt(add(mul(neg(input), input), 1))))))",
    foreach=True,
    found="torch and method",
)
def acos(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(-F.rsqrt((1 - input) * (1 + input))))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def atan(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / F.conj(input * input + 1))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def sinh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.cosh(input)))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def cosh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.sinh(input)))


@elementwise(
    in_place=True,
    promote="float",
    backward="tanh_backward(grad, result)",
    foreach=True,
    functional=True,
    found="torch and method",
)
def tanh(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.tanh_backward(grad, result))


@elementwise(in_place=True, promote="float", found="torch and method")
def asinh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.rsqrt(input * input + 1)))


@elementwise(in_place=True, promote="float", found="torch and method")
def acosh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.acosh_slope(input)))


@elementwise(in_place=True, promote="float", found="torch and method")
def atanh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / F.conj((1 - input) * (1 + input)))


@elementwise(
    in_place=True, promote="float", backward="atan2_back(grad, input, other, output_mask)", found="torch and method"
)
def atan2(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    scaled = F.over_square_radius(grad, input, other)
    return wrt(input=other * scaled, other=-input * scaled)


@elementwise(in_place=True, found="torch and method")
def hypot(grad: Tensor, input: Tensor, other: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * (input / result), other=grad * (other / result))


@elementwise(in_place=True, promote="float", node="Deg2RadBackward0", found="torch and method")
def deg2rad(grad: Tensor) -> Pullback:
    return wrt(input=F.deg2rad(grad))


@elementwise(in_place=True, promote="float", node="Rad2DegBackward0", found="torch and method")
def rad2deg(grad: Tensor) -> Pullback:
    return wrt(input=F.rad2deg(grad))


@elementwise(in_place=True, promote="float", found="torch and method")
def sinc(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.sinc_grad(grad, input))
