"""Rules of kernels/sorting.py: a gradient goes back to where its element came from."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Tensor, general, non_differentiable, tangent, wrt


@general(
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_sorted(grad, dim, indices, input.shape))",
    returns=True,
)
def sort(grad: Tensor, input: Tensor, dim: Dim, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_along(grad, indices, input.shape, dim))


@tangent
def sort_tangent(input_tangent: Tensor, dim: Dim, *, indices: Tensor) -> Tensor:
    return (F.take_along(input_tangent, indices, dim), None)


@general(
    node="SortBackward1",
    public="sort",
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_sorted(grad, dim, indices, input.shape))",
)
def sort_stable(grad: Tensor, input: Tensor, dim: Dim, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_along(grad, indices, input.shape, dim))


@tangent
def sort_stable_tangent(input_tangent: Tensor, dim: Dim, *, indices: Tensor) -> Tensor:
    return (F.take_along(input_tangent, indices, dim), None)


@non_differentiable(gives="positions")
def argsort(input: Tensor, dim: Dim) -> None: ...


@general(
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_sorted(grad, dim, indices, input.shape))",
    returns=True,
)
def topk(grad: Tensor, input: Tensor, dim: Dim, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_along(grad, indices, input.shape, dim))


@tangent
def topk_tangent(input_tangent: Tensor, dim: Dim, *, indices: Tensor) -> Tensor:
    return (F.take_along(input_tangent, indices, dim), None)


@general(
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_selected(grad, dim, indices, input.shape, keepdim))",
    out_apart=True,
    returns=True,
)
def kthvalue(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@tangent
def kthvalue_tangent(input_tangent: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Tensor:
    return (F.take_reduced(input_tangent, indices, dim, keepdim), None)


@general(node="MedianBackward0", public="median")
def median_all(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.share_evenly(grad, input, result))


@tangent
def median_all_tangent(input: Tensor, input_tangent: Tensor, *, result: Tensor) -> Tensor:
    return F.sum(input_tangent * F.share_among_equals_or_nans(input, result))


@general(node="NanmedianBackward0", public="nanmedian")
def nanmedian_all(grad: Tensor, input: Tensor, *, result: Tensor) -> Pullback:
    return wrt(input=F.share_evenly(grad, input, result))


@tangent
def nanmedian_all_tangent(input: Tensor, input_tangent: Tensor, *, result: Tensor) -> Tensor:
    return F.sum(input_tangent * F.share_among_equals_or_nans(input, result))


@general(
    node="MedianBackward1",
    public="median",
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_selected(grad, dim, indices, input.shape, keepdim))",
)
def median_dim(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@tangent
def median_dim_tangent(input_tangent: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Tensor:
    return (F.take_reduced(input_tangent, indices, dim, keepdim), None)


@general(
    node="NanmedianBackward1",
    public="nanmedian",
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_selected(grad, dim, indices, input.shape, keepdim))",
)
def nanmedian_dim(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@tangent
def nanmedian_dim_tangent(input_tangent: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Tensor:
    return (F.take_reduced(input_tangent, indices, dim, keepdim), None)


@general(
    outputs=("values", "indices"),
    differentiable=(True, False),
    gives="positions",
    backward="wrt(input=put_selected(grad, dim, indices, input.shape, keepdim))",
    returns=True,
)
def mode(grad: Tensor, input: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@tangent
def mode_tangent(input_tangent: Tensor, dim: Dim, keepdim: bool, *, indices: Tensor) -> Tensor:
    return (F.take_reduced(input_tangent, indices, dim, keepdim), None)
