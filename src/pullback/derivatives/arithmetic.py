"""Rules of kernels/arithmetic.py."""

from __future__ import annotations

from pullback.rules import (
    F,
    Pullback,
    Scalar,
    Tensor,
    elementwise,
    linear,
    non_differentiable,
    not_implemented,
    tangent,
    wrt,
)


@elementwise(in_place=True, number_first=True, foreach=True, in_place_overload="add_.Tensor", loops_on_integers=True)
def add(grad: Tensor, input: Tensor, other: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=grad, other=grad if alpha == 1 else F.scaled_by(grad, alpha))


@elementwise(
    in_place=True,
    promote="subtraction",
    number_first=True,
    foreach=True,
    in_place_overload="sub_.Tensor",
    loops_on_integers=True,
    found="torch and method",
)
def sub(grad: Tensor, input: Tensor, other: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=grad, other=-grad if alpha == 1 else F.scaled_by(-grad, alpha))


@elementwise(node="RsubBackward1", promote="subtraction")
def rsub(grad: Tensor, input: Tensor, other: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=-grad if alpha == 1 else F.scaled_by(-grad, alpha))


@elementwise(node="RsubBackward0", promote="subtraction", public="rsub")
def rsub_tensor(grad: Tensor, input: Tensor, other: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=-grad if alpha == 1 else F.scaled_by(-grad, alpha), other=grad)


@elementwise(
    in_place=True,
    promote="product",
    backward="wrt(other=mul(grad, conj(input)), input=times_operand(grad, other))",
    number_first=True,
    foreach=True,
    in_place_overload="mul_.Tensor",
    loops_on_integers=True,
    ufunc="multiply",
    found="torch and method",
)
def mul(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(other), other=grad * F.conj(input))


@elementwise(
    in_place=True,
    promote="quotient",
    backward="wrt(other=mul(conj(div(div(input, other), other)), neg(grad)), input=over_operand(grad, other))",
    number_first=True,
    foreach=True,
    in_place_overload="div_.Tensor",
    bare=True,
    ufunc="divide",
    infinite="value",
    divides_by="other",
    breaks="by dividing",
)
def div(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad / F.conj(other), other=-grad * F.conj(input / other / other))


@elementwise(node="AddBackward1", public="add", loops_on_integers=True)
def add_scalar(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad)


@elementwise(node="SubBackward1", public="sub")
def sub_scalar(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad)


@elementwise(node="MulBackward1", public="mul", loops_on_integers=True)
def mul_scalar(grad: Tensor, input: Tensor, other: Scalar) -> Pullback:
    return wrt(input=F.scaled_by(grad, other))


@elementwise(node="DivBackward1", public="div", infinite="value", divides_by="other", breaks="by dividing")
def div_scalar(grad: Tensor, input: Tensor, other: Scalar) -> Pullback:
    return wrt(input=grad / F.conj(other))


@elementwise(
    in_place=True,
    node="DivBackward2",
    public="div",
    promote="product",
    shows="rounding_mode",
    infinite="value",
    divides_by="other",
    breaks="by dividing",
)
def div_rounded(grad: Tensor, input: Tensor, other: Tensor, rounding_mode: str) -> Pullback:
    return wrt(input=F.zeros_of(grad), other=F.zeros_of(grad))


@elementwise(in_place=True, promote="product", number_first=True)
def floor_divide(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=not_implemented("aten::floor_divide"), other=not_implemented("aten::floor_divide"))


@elementwise(in_place=True, node="RemainderBackward1", bare=True)
def remainder(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad, other=-grad * F.div_rounded(F.to_dtype(input, grad.dtype), other, "floor"))


@tangent
def remainder_tangent(input: Tensor, other: Tensor, input_tangent: Tensor, other_tangent: Tensor) -> Tensor:
    return input_tangent - other_tangent * F.div_rounded(input, other, "floor")


@elementwise(node="RemainderBackward0", public="remainder")
def remainder_scalar(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad)


@elementwise(in_place=True, node="FmodBackward1")
def fmod(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad, other=-grad * F.div_rounded(F.to_dtype(input, grad.dtype), other, "trunc"))


@tangent
def fmod_tangent(input: Tensor, other: Tensor, input_tangent: Tensor, other_tangent: Tensor) -> Tensor:
    return input_tangent - other_tangent * F.div_rounded(input, other, "trunc")


@elementwise(node="FmodBackward0", public="fmod")
def fmod_scalar(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=grad)


@elementwise(
    in_place=True, out_dtype="found", foreach=True, loops_on_integers=True, ufunc="negative", found="torch and method"
)
def neg(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=-grad)


@elementwise(
    in_place=True,
    promote="float",
    backward="wrt(input=mul(conj(mul(result, result)), neg(grad)))",
    foreach=True,
    found="torch and method",
    infinite="value",
    breaks="by dividing",
)
def reciprocal(grad: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=-grad * F.conj(result * result))


@elementwise(
    in_place=True,
    backward="wrt(input=grad, tensor1=scaled_back(grad, tensor2, value), tensor2=scaled_back(grad, tensor1, value))",
    foreach=True,
)
def addcmul(grad: Tensor, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar) -> Pullback:
    return wrt(
        input=grad,
        tensor1=grad * F.conj(tensor2 * value),
        tensor2=grad * F.conj(tensor1 * value),
    )


@elementwise(in_place=True, foreach=True)
def addcdiv(grad: Tensor, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar) -> Pullback:
    return wrt(
        input=grad,
        tensor1=grad * F.conj(value / tensor2),
        tensor2=-grad * F.conj(value * tensor1 / (tensor2 * tensor2)),
    )


@non_differentiable(
    in_place=True,
    promote="common",
    structure="elementwise",
    found="torch and method",
    found_in_place="torch and method",
)
def gcd(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(
    in_place=True,
    promote="common",
    structure="elementwise",
    found="torch and method",
    found_in_place="torch and method",
)
def lcm(input: Tensor, other: Tensor) -> None: ...


@linear(node="ConjBackward0", structure="elementwise", same_values=True)
def conjugated(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.conj(grad))
