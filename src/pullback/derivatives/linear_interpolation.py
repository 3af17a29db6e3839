"""Rules of kernels/linear_interpolation.py."""

from __future__ import annotations

from pullback.rules import (
    F,
    Pullback,
    Scalar,
    Tensor,
    elementwise,
    wrt,
)


@elementwise(in_place=True, node="LerpBackward1", foreach=True)
def lerp(grad: Tensor, input: Tensor, end: Tensor, weight: Tensor) -> Pullback:
    return wrt(
        input=grad * F.conj(1 - weight),
        end=grad * F.conj(weight),
        weight=grad * F.conj(end - input),
    )


@elementwise(in_place=True, node="LerpBackward0", public="lerp")
def lerp_scalar(grad: Tensor, input: Tensor, end: Tensor, weight: Scalar) -> Pullback:
    return wrt(input=F.scaled_by(grad, 1 - weight), end=F.scaled_by(grad, weight))
