"""Rules of kernels/trigonometric.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, non_differentiable, wrt


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def sin(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.cos(input)))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def cos(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(-F.sin(input)))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def tan(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.pow_scalar(result, 2) + 1))


@elementwise(
    in_place=True,
    backward="wrt(input=mul(grad, conj(rsqrt(add(mul(neg(input), input), 1)))))",
    promote="float",
    foreach=True,
    found="torch and method",
    domain="-1 1",
    infinite="derivative",
)
def asin(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.rsqrt(F.exactly(-input * input + 1, (1 - input) * (1 + input)))))


@elementwise(
    in_place=True,
    backward="wrt(input=mul(grad, conj(neg(rsqrt(add(mul(neg(input), input), 1))))))",
    promote="float",
    foreach=True,
    found="torch and method",
    domain="-1 1",
    infinite="derivative",
)
def acos(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(-F.rsqrt(F.exactly(-input * input + 1, (1 - input) * (1 + input)))))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method")
def atan(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / F.conj(input * input + 1))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method", breaks="by growing")
def sinh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.cosh(input)))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method", breaks="by growing")
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


@elementwise(in_place=True, promote="float", found="torch and method", renumbered=True)
def asinh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.rsqrt(F.pow_scalar(input, 2) + 1)))


@elementwise(
    in_place=True, promote="float", found="torch and method", domain="1 inf", infinite="derivative", renumbered=True
)
def acosh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.acosh_slope(input)))


@elementwise(in_place=True, promote="float", found="torch and method", domain="-1 1", infinite="value", renumbered=True)
def atanh(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * 1 / F.conj(F.exactly(1 - F.pow_scalar(input, 2), (1 - input) * (1 + input))))


@elementwise(
    in_place=True,
    promote="float",
    backward="atan2_back(grad, input, other, output_mask)",
    found="torch and method",
    infinite="derivative",
    divides_by="other input",
)
def atan2(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    scale = F.over_square_radius(input, other)
    return wrt(input=grad * other * scale, other=grad * -input * scale)


@elementwise(in_place=True, found="torch and method")
def hypot(grad: Tensor, input: Tensor, other: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * input / result, other=grad * other / result)


@elementwise(in_place=True, promote="float", node="Deg2RadBackward0", found="torch and method")
def deg2rad(grad: Tensor) -> Pullback:
    return wrt(input=grad * 0.017453292519943295)


@elementwise(in_place=True, promote="float", node="Rad2DegBackward0", found="torch and method")
def rad2deg(grad: Tensor) -> Pullback:
    return wrt(input=grad * 57.29577951308232)


@non_differentiable(structure="elementwise")
def sinc_slope(input: Tensor) -> None: ...


@elementwise(in_place=True, promote="float", found="torch and method")
def sinc(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.sinc_grad(grad, input))
