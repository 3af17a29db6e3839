"""Rules of kernels/shape.py."""

from __future__ import annotations

from pullback.rules import Dim, DType, F, Pullback, Shape, Tensor, linear, non_differentiable, wrt


@linear
def clone(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad)


@linear(node="ToCopyBackward0")
def to_dtype(grad: Tensor, input: Tensor, dtype: DType) -> Pullback:
    return wrt(input=F.to_dtype(grad, input.dtype))


@linear(view=True)
def expand(grad: Tensor, input: Tensor, size: Shape) -> Pullback:
    return wrt(input=F.sum_to(grad, input.shape))


@linear(view=True)
def transpose(grad: Tensor, input: Tensor, dim0: Dim, dim1: Dim) -> Pullback:
    return wrt(input=F.transpose(grad, dim0, dim1))


@non_differentiable
def to_integer(input: Tensor, dtype: DType) -> None: ...
