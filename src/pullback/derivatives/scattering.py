"""Rules of kernels/scattering.py."""

from __future__ import annotations

from pullback.rules import (
    Arrays,
    Dim,
    F,
    Pullback,
    Scalar,
    Shape,
    Tensor,
    general,
    linear,
    non_differentiable,
    self_adjoint,
    wrt,
)


@linear(
    in_place=True,
    out=False,
    aten="index_put(input, placed(indices, dims), values, accumulate)",
    writes="at_positions",
)
def index_put(grad: Tensor, input: Tensor, indices: Arrays, dims: Shape, values: Tensor, accumulate: bool) -> Pullback:
    return wrt(
        input=grad if accumulate else F.index_put(grad, indices, dims, F.zeros_in_shape(grad, ()), False),
        values=F.sum_to(F.index(grad, indices, dims), values.shape),
    )


@linear(in_place=True, out_dtype="c_types", writes="at_positions")
def scatter(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, src: Tensor) -> Pullback:
    return wrt(
        input=F.scatter_value(grad, dim, index, 0),
        src=F.padded_to(F.gather(grad, dim, index), src.shape),
    )


@self_adjoint(in_place=True, node="ScatterBackward1", public="scatter", fresh=True)
def scatter_value(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, value: Scalar) -> Pullback:
    return wrt(input=F.scatter_value(grad, dim, index, 0))


@linear(in_place=True, out_dtype="c_types", fresh=True, writes="at_positions", found="torch and method")
def scatter_add(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, src: Tensor) -> Pullback:
    return wrt(input=grad, src=F.padded_to(F.gather(grad, dim, index), src.shape))


@linear(out=False)
def pad_to(grad: Tensor, input: Tensor, shape: Shape) -> Pullback:
    return wrt(input=F.low_corner(grad, input.shape))


@general(in_place=True, out_dtype="c_types", writes="at_positions", found="torch and method")
def scatter_reduce(
    grad: Tensor,
    input: Tensor,
    dim: Dim,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
    *,
    result: Tensor,
) -> Pullback:
    return wrt(
        input=F.scatter_reduce_back_input(grad, input, dim, index, src, reduce, include_self, result),
        src=F.scatter_reduce_back_source(grad, input, dim, index, src, reduce, include_self, result),
    )


@linear(in_place=True, out_dtype="c_types", writes="at_positions", found="torch and method")
def index_add(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, source: Tensor, alpha: Scalar) -> Pullback:
    return wrt(input=grad, source=F.index_add_back_source(grad, dim, index, source.shape, alpha))


@linear(in_place=True, autocast="widest", out_dtype="c_types", writes="at_positions", found="torch and method")
def index_copy(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, source: Tensor) -> Pullback:
    return wrt(
        input=F.index_fill(grad, dim, index, 0),
        source=F.index_add_back_source(grad, dim, index, source.shape, 1),
    )


@self_adjoint(in_place=True, writes="fill")
def index_fill(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, value: Scalar) -> Pullback:
    return wrt(input=F.index_fill(grad, dim, index, 0))


@linear(in_place=True, node="IndexFillBackward1", refuses_integers=True, public="index_fill")
def index_fill_tensor(grad: Tensor, input: Tensor, dim: Dim, index: Tensor, value: Tensor) -> Pullback:
    return wrt(
        input=F.index_fill(grad, dim, index, 0),
        value=F.to_dtype(
            F.sum_all(F.index_select(grad, dim, F.distinct_positions(index, grad.shape, dim))), value.dtype
        ),
    )


@general(in_place=True, out_dtype="c_types", writes="at_positions", found="torch and method")
def index_reduce(
    grad: Tensor,
    input: Tensor,
    dim: Dim,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool,
    *,
    result: Tensor,
) -> Pullback:
    return wrt(
        input=F.index_reduce_back_input(grad, input, dim, index, source, reduce, include_self, result),
        source=F.index_reduce_back_source(grad, input, dim, index, source, reduce, include_self, result),
    )


@linear(in_place=True, out=False, found="torch and method")
def put(grad: Tensor, input: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Pullback:
    return wrt(
        input=grad if accumulate else F.put(grad, index, F.zeros_in_shape(grad, index.shape), False),
        source=F.reshape(F.take(grad, index), source.shape),
    )


@non_differentiable(out=False, structure="elementwise")
def ones_in_shape_of(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def is_zero(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def is_false(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def ones_where_equal(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(out=False, count_of_values=True)
def distinct_positions(index: Tensor, shape: Shape, dim: int) -> None: ...


@non_differentiable(out=False)
def positive_index(index: Tensor, shape: Shape, dim: int) -> None: ...


@non_differentiable(out=False)
def expand_index(index: Tensor, shape: Shape, dim: int) -> None: ...
