"""Rules of kernels/exponential.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, wrt


@elementwise(
    in_place=True,
    node="PowBackward1",
    backward="wrt(exponent=pow_back_exponent(grad, input, exponent, result), input=pow_back(grad, input, exponent))",
    foreach=True,
    in_place_overload="pow_.Scalar",
    asks=True,
    bare=True,
    infinite="derivative",
    divides_by="input",
    breaks="with its exponent",
)
def pow(grad: Tensor, input: Tensor, exponent: Tensor, *, result: Tensor) -> Pullback:
    return wrt(
        input=F.where(exponent == 0, 0, grad * F.conj(exponent * F.pow(input, exponent - 1))),
        exponent=F.pow_grad_exponent(grad, input, exponent, result),
    )


@elementwise(
    in_place=True,
    node="PowBackward0",
    public="pow",
    backward="wrt(input=mul(grad, conj(mul(pow(input, exponent - 1.0), 1.0 * exponent))) "
    "if exponent != 0 else zeros_like(grad))",
    infinite="derivative",
    divides_by="input",
    breaks="with its exponent",
)
def pow_scalar(grad: Tensor, input: Tensor, exponent: Tensor) -> Pullback:
    return wrt(input=F.pow_grad_input(grad, input, exponent))


@elementwise(node="PowBackward2", public="pow", infinite="derivative", divides_by="input", breaks="with its exponent")
def pow_base(grad: Tensor, exponent: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(exponent=F.pow_base_grad(grad, exponent, input, result))


@elementwise(
    in_place=True,
    promote="float",
    foreach=True,
    ufunc="sqrt",
    found="torch and method",
    domain="0 inf",
    infinite="derivative",
)
def sqrt(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad / (2 * F.conj(result)))


@elementwise(
    in_place=True,
    promote="float",
    backward="wrt(input=mul(conj(pow(result, 3)), mul(grad, -0.5)))",
    foreach=True,
    found="torch and method",
    domain="0 inf",
    infinite="value",
)
def rsqrt(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=-0.5 * grad * F.conj(F.pow_scalar(result, 3)))


@elementwise(
    in_place=True, promote="float", foreach=True, found="torch and method", takes_minus_inf=True, breaks="by growing"
)
def exp(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(result))


@elementwise(in_place=True, promote="float", found="torch and method", takes_minus_inf=True, breaks="by growing")
def exp2(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(result) * 0.6931471805599453)


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method", breaks="by growing")
def expm1(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * (F.conj(result) + 1))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method", domain="0 inf", infinite="value")
def log(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / F.conj(input))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method", domain="0 inf", infinite="value")
def log2(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / (F.conj(input) * 0.6931471805599453))


@elementwise(in_place=True, promote="float", foreach=True, found="torch and method", domain="0 inf", infinite="value")
def log10(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / (F.conj(input) * 2.302585092994046))


@elementwise(
    in_place=True,
    promote="float",
    node="Log1PBackward0",
    foreach=True,
    found="torch and method",
    domain="-1 inf",
    infinite="value",
)
def log1p(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad / F.conj(input + 1))


@elementwise(found="torch and method")
def logaddexp(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=grad / F.conj(1 + F.exp(other - input)),
        other=grad / F.conj(1 + F.exp(input - other)),
    )


@elementwise(found="torch and method")
def logaddexp2(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=grad / F.conj(1 + F.pow_base(other - input, 2)),
        other=grad / F.conj(1 + F.pow_base(input - other, 2)),
    )
