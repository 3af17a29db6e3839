"""Rules of kernels/extrema.py.

A gradient goes in equal shares to all elements that are the extremum, except in max_dim and min_dim, where it goes to
the one that the index names.
"""

from __future__ import annotations

from pullback.rules import Dim, Dims, F, Pullback, Tensor, general, non_differentiable, tangent, wrt


@general(
    node="MaxBackward1", public="max", backward="wrt(input=all_extreme_back(grad, input, result))", takes_minus_inf=True
)
def max_all(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.share_evenly(grad, input, result))


@tangent
def max_all_tangent(input: Tensor, input_tangent: Tensor, *, result: Tensor) -> Tensor:
    return F.sum(input_tangent * F.share_among_equals_or_nans(input, result))


@general(node="MinBackward1", public="min", backward="wrt(input=all_extreme_back(grad, input, result))")
def min_all(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.share_evenly(grad, input, result))


@tangent
def min_all_tangent(input: Tensor, input_tangent: Tensor, *, result: Tensor) -> Tensor:
    return F.sum(input_tangent * F.share_among_equals_or_nans(input, result))


@general(
    node="MaxBackward0", public="max", outputs=("values", "indices"), differentiable=(True, False), gives="positions",
    backward="wrt(input=put_selected(grad, dim, indices, input.shape, keepdim))", takes_minus_inf=True,
)  # fmt: skip
def max_dim(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@tangent
def max_dim_tangent(input_tangent: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Tensor:
    return (F.take_reduced(input_tangent, indices, dim, keepdim), None)


@general(
    node="MinBackward0", public="min", outputs=("values", "indices"), differentiable=(True, False), gives="positions",
    backward="wrt(input=put_selected(grad, dim, indices, input.shape, keepdim))",
)  # fmt: skip
def min_dim(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@tangent
def min_dim_tangent(input_tangent: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Tensor:
    return (F.take_reduced(input_tangent, indices, dim, keepdim), None)


@general(
    backward="wrt(input=extremum_back(grad, input, result, dim, keepdim))",
    out_dtype="for_input",
    quantized=True,
    masked_reduction=True,
    found="torch and method",
    takes_minus_inf=True,
)
def amax(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.extremum_grad(grad, input, result, dim, keepdim))


@tangent
def amax_tangent(input: Tensor, input_tangent: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Tensor:
    return F.sum(input_tangent * F.share_among_equals(input, result, dim, keepdim), dim, keepdim)


@general(
    backward="wrt(input=extremum_back(grad, input, result, dim, keepdim))",
    out_dtype="for_input",
    quantized=True,
    masked_reduction=True,
    found="torch and method",
)
def amin(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.extremum_grad(grad, input, result, dim, keepdim))


@tangent
def amin_tangent(input: Tensor, input_tangent: Tensor, dim: Dims, keepdim: bool, *, result: Tensor) -> Tensor:
    return F.sum(input_tangent * F.share_among_equals(input, result, dim, keepdim), dim, keepdim)


@general(outputs=("min", "max"), out_dtype="c_types", returns=True)
def aminmax(
    grad_min: Tensor, grad_max: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, min: Tensor, max: Tensor
) -> Pullback:
    return wrt(input=F.aminmax_grad(grad_min, grad_max, input, min, max, dim, keepdim))


@non_differentiable(out_dtype="c_types", gives="positions", masked_reduction=True, found="torch and method")
def argmax(input: Tensor, dim: Dim, keepdim: bool) -> None: ...


@non_differentiable(out_dtype="c_types", gives="positions", masked_reduction=True, found="torch and method")
def argmin(input: Tensor, dim: Dim, keepdim: bool) -> None: ...


@non_differentiable(out=False)
def share_among_equals(input: Tensor, extreme: Tensor, dim: Dims, keepdim: bool) -> None: ...


@non_differentiable(out=False)
def share_among_equals_or_nans(input: Tensor, extreme: Tensor) -> None: ...
