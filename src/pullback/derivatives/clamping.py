"""Rules of kernels/clamping.py. At a tie both sides of maximum get half; a bound that is met lets the gradient pass."""

from __future__ import annotations

from pullback.rules import F, Pullback, Scalar, Tensor, elementwise, wrt


@elementwise(
    backward="wrt(other=extreme_back(grad, input, other, 'gt'), input=extreme_back(grad, input, other, 'lt'))",
    foreach=True,
    ufunc="maximum",
    found="torch and method",
    takes_minus_inf=True,
)
def maximum(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.share_of_tie(grad, input < other, input == other),
        other=F.share_of_tie(grad, input > other, input == other),
    )


@elementwise(
    backward="wrt(other=extreme_back(grad, input, other, 'lt'), input=extreme_back(grad, input, other, 'gt'))",
    foreach=True,
    ufunc="minimum",
    found="torch and method",
)
def minimum(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.share_of_tie(grad, input > other, input == other),
        other=F.share_of_tie(grad, input < other, input == other),
    )


@elementwise(found="torch and method")
def fmax(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.drop_where(F.logical_not(F.logical_or(input >= other, F.isnan(other))), grad),
        other=F.drop_where(F.logical_or(input >= other, F.isnan(other)), grad),
    )


@elementwise(found="torch and method")
def fmin(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.drop_where(F.logical_not(F.logical_or(input <= other, F.isnan(other))), grad),
        other=F.drop_where(F.logical_or(input <= other, F.isnan(other)), grad),
    )


@elementwise(
    in_place=True,
    node="ClampBackward1",
    backward="wrt(input=clamp_back(grad, input, min, max))",
    bare=True,
    takes_minus_inf=True,
)
def clamp(grad: Tensor, input: Tensor, min: Scalar, max: Scalar) -> Pullback:
    return wrt(input=F.clamp_grad(grad, input, min, max))


@elementwise(in_place=True, node="ClampBackward0", public="clamp", takes_minus_inf=True)
def clamp_tensor(grad: Tensor, input: Tensor, min: Tensor, max: Tensor) -> Pullback:
    return wrt(
        input=F.clamp_grad(grad, input, min, max),
        min=F.clamp_grad_min(grad, input, min, max),
        max=F.clamp_grad_max(grad, input, min, max),
    )


@elementwise(
    in_place=True, backward="wrt(input=clamp_back(grad, input, min, None))", foreach=True, bare=True, ufunc="maximum"
)
def clamp_min(grad: Tensor, input: Tensor, min: Scalar) -> Pullback:
    return wrt(input=F.keep_where(input >= min, grad))


@elementwise(in_place=True, node="ClampMinBackward1", public="clamp_min")
def clamp_min_tensor(grad: Tensor, input: Tensor, min: Tensor) -> Pullback:
    return wrt(input=F.keep_where(input >= min, grad), min=F.keep_where(input < min, grad))


@elementwise(in_place=True, backward="wrt(input=clamp_back(grad, input, None, max))", foreach=True, ufunc="minimum")
def clamp_max(grad: Tensor, input: Tensor, max: Scalar) -> Pullback:
    return wrt(input=F.keep_where(input <= max, grad))


@elementwise(in_place=True, node="ClampMaxBackward1", public="clamp_max")
def clamp_max_tensor(grad: Tensor, input: Tensor, max: Tensor) -> Pullback:
    return wrt(input=F.keep_where(input <= max, grad), max=F.keep_where(input > max, grad))


@elementwise(
    in_place=True,
    out_dtype="nan_to_num: dtype of out: {1} should be same as input: {0}",
    found="torch and method",
    found_in_place="torch and method",
)
def nan_to_num(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad * F.isfinite(input))
