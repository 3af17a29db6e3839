"""Rules of kernels/rounding.py: steps have the gradient zero."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, tangent, wrt


@elementwise(
    in_place=True, backward="wrt(input=zeros_like(grad))", out_dtype="found", foreach=True, found="torch and method"
)
def floor(grad: Tensor) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@elementwise(
    in_place=True, backward="wrt(input=zeros_like(grad))", out_dtype="found", foreach=True, found="torch and method"
)
def ceil(grad: Tensor) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@elementwise(
    in_place=True, backward="wrt(input=zeros_like(grad))", out_dtype="found", foreach=True, found="torch and method"
)
def trunc(grad: Tensor) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@elementwise(in_place=True, backward="wrt(input=zeros_like(grad))", out_dtype="found", foreach=True)
def round(grad: Tensor) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@elementwise(in_place=True, node="RoundBackward1", public="round")
def round_decimals(grad: Tensor) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@elementwise(in_place=True, out_dtype="found", foreach=True, found="torch and method")
def frac(grad: Tensor) -> Pullback:
    return wrt(input=grad)


@elementwise(in_place=True, found="torch and method")
def nextafter(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=F.keep_where(input != other, grad), other=F.zeros_of(grad))


@elementwise(
    outputs=("mantissa", "exponent"),
    differentiable=(True, False),
    out_dtype="torch.frexp() expects mantissa to have dtype {0} but got {1}",
    returns=True,
    loops=False,
)
def frexp(grad: Tensor, *, exponent: Tensor) -> Pullback:
    return wrt(input=grad / F.exp2_of(exponent, grad))


@tangent
def frexp_tangent(input_tangent: Tensor, *, exponent: Tensor) -> Tensor:
    return (input_tangent / F.exp2_of(exponent, input_tangent), None)


@elementwise(in_place=True, promote="float", found="torch and method", found_in_place="torch and method")
def ldexp(grad: Tensor, input: Tensor, other: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(F.pow_base(other, 2)), other=grad * F.conj(result) * 0.6931471805599453)
