"""Rules of kernels/arithmetic.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Scalar, Tensor, elementwise, linear, wrt


@elementwise(in_place=True)
def add(grad: Tensor, input: Tensor, other: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=grad, other=grad if alpha == 1 else grad * alpha)


@elementwise(in_place=True)
def sub(grad: Tensor, input: Tensor, other: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=grad, other=-grad if alpha == 1 else -grad * alpha)


@elementwise(in_place=True)
def mul(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(other), other=grad * F.conj(input))


@elementwise(in_place=True, promote="float")
def div(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad / F.conj(other), other=-grad * F.conj(input / other / other))


@elementwise(in_place=True)
def neg(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=-grad)


@linear
def conj(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.conj(grad))
