"""Rules of kernels/signs.py: steps have the gradient zero."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, elementwise, non_differentiable, not_implemented, tangent, wrt


@elementwise(
    in_place=True,
    backward="wrt(input=zeros_like(grad))",
    out_dtype="found",
    foreach=True,
    found="torch and method",
    found_in_place="method",
)
def sign(grad: Tensor) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@non_differentiable(structure="elementwise", out_dtype="not_bool", found="torch and method")
def signbit(input: Tensor) -> None: ...


@elementwise(in_place=True, promote="float")
def copysign(grad: Tensor, input: Tensor, other: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.copysign_grad(grad, input, result), other=F.zeros_in_shape_of(grad))


@elementwise(promote="float", node="CopysignBackward1", public="copysign")
def copysign_scalar(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.copysign_grad(grad, input, result))


@elementwise(in_place=True, out_dtype="heaviside is not yet implemented for tensors with different dtypes: {0} and {1}")
def heaviside(grad: Tensor, input: Tensor, values: Tensor) -> Pullback:
    return wrt(input=not_implemented("aten::heaviside"), values=not_implemented("aten::heaviside"))


@elementwise(in_place=True, out_dtype="found", exact=True, foreach=True, ufunc="absolute", found="torch and method")
def abs(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.sgn(input))


@elementwise(in_place=True, out_dtype="found", found="torch and method", found_in_place="method")
def sgn(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.sgn_grad(grad, input, result))


@tangent
def sgn_tangent(input: Tensor, input_tangent: Tensor, *, result: Tensor) -> Tensor:
    return F.sgn_grad(input_tangent, input, result)
