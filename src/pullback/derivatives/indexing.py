"""Rules of kernels/indexing.py."""

from __future__ import annotations

from pullback.rules import Arrays, Dim, F, Pullback, Shape, Tensor, linear, non_differentiable, wrt


@linear(view=True, backward="select_backward(grad, input.shape, dim, index)")
def select(grad: Tensor, input: Tensor, dim: Dim, index: int) -> Pullback:
    return wrt(input=F.select_back(grad, input.shape, dim, index))


@linear(
    view=True,
    node="SliceBackward0",
    aten="slice(input, dim, start, end, step)",
    backward="slice_backward(grad, input.shape, dim, start, end, step)",
)
def slice_view(grad: Tensor, input: Tensor, dim: Dim, start: int, end: int, step: int) -> Pullback:
    return wrt(input=F.slice_back(grad, input.shape, dim, start, end, step))


@linear(out=False, node="SelectBackwardBackward0", fresh=True)
def select_back(grad: Tensor, input: Tensor, shape: Shape, dim: int, index: int) -> Pullback:
    return wrt(input=F.select(grad, dim, index))


@linear(out=False, node="SliceBackwardBackward0", fresh=True)
def slice_back(grad: Tensor, input: Tensor, shape: Shape, dim: int, start: int, end: int, step: int) -> Pullback:
    return wrt(input=F.slice_view(grad, dim, start, end, step))


@linear(
    out=False,
    aten="index(input, placed(indices, dims))",
    backward="wrt(input=index_back(grad, placed(indices, dims), input.shape))",
    moves=True,
    found="method",
)
def index(grad: Tensor, input: Tensor, indices: Arrays, dims: Shape) -> Pullback:
    return wrt(input=F.index_back(grad, input.shape, indices, dims))


@linear(
    backward="wrt(input=index_select_back(grad, dim, index, input.shape))",
    out_dtype="same_scalar_type",
    moves=True,
    found="torch and method",
)
def index_select(grad: Tensor, input: Tensor, dim: Dim, index: Tensor) -> Pullback:
    return wrt(input=F.index_select_back(grad, input.shape, dim, index))


@linear(
    backward="wrt(input=gather_back(grad, dim, index, input.shape))",
    shows="sparse_grad",
    out_dtype="c_types",
    out_apart=True,
    moves=True,
    found="torch and method",
)
def gather(grad: Tensor, input: Tensor, dim: Dim, index: Tensor) -> Pullback:
    return wrt(input=F.scatter_add(F.zeros_in_shape(grad, input.shape), dim, index, grad))


@linear(
    out_dtype="take(): self and out expected to have the same dtype, but got self.dtype = {0} and out.dtype = {1}",
    out_apart=True,
    moves=True,
    found="torch and method",
)
def take(grad: Tensor, input: Tensor, index: Tensor) -> Pullback:
    return wrt(input=F.take_back(grad, input.shape, index))


@linear(
    out_dtype="same_scalar_type",
    out_apart=True,
    count_of_values=True,
    loops=False,
    moves=True,
    found="torch and method",
)
def masked_select(grad: Tensor, input: Tensor, mask: Tensor) -> Pullback:
    return wrt(input=F.masked_select_back(grad, input.shape, mask))


@non_differentiable(
    out_dtype="nonzero: Expected out tensor to have scalar type {0} but got scalar type {1}",
    count_of_values=True,
    gives="positions",
)
def nonzero(input: Tensor) -> None: ...


@non_differentiable(gives="positions", found="torch and method")
def nonzero_static(input: Tensor, size: int, fill_value: int) -> None: ...
