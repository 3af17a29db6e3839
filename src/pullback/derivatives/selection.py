"""Rules of kernels/selection.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, general, tangent, wrt


@elementwise(
    backward="wrt(other=where_back(grad, condition, False), input=where_back(grad, condition, True))",
    out_dtype="Expected out type to be {0} but got {1}",
    fresh=True,
    exact=True,
    loops_on_integers=True,
)
def where(grad: Tensor, condition: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=F.where(condition, grad, 0), other=F.where(condition, 0, grad))


@general(out=False, structure="leading", same_values=True)
def add_dependency(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad, other=F.to_dtype(F.zeros_in_shape(grad, other.shape), other.dtype))


@tangent
def add_dependency_tangent(input_tangent: Tensor) -> Tensor:
    return input_tangent
