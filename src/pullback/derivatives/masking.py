"""Rules of kernels/masking.py."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Scalar, Shape, Tensor, general, linear, self_adjoint, tangent, wrt


@general(
    in_place=True, out=False, structure="elementwise", writes="fill", in_place_overload="masked_fill_.Scalar", bare=True
)
def masked_fill(grad: Tensor, input: Tensor, mask: Tensor, value: Scalar) -> Pullback:
    return wrt(input=F.sum_to(F.masked_fill(grad, mask, 0), input.shape))


@tangent
def masked_fill_tangent(mask: Tensor, input_tangent: Tensor) -> Tensor:
    return F.masked_fill(input_tangent, mask, 0)


@linear(
    in_place=True,
    node="MaskedFillBackward1",
    refuses_integers=True,
    out=False,
    profiled="masked_fill",
    writes="fill",
    in_place_overload="masked_fill_.Tensor",
)
def masked_fill_tensor(grad: Tensor, input: Tensor, mask: Tensor, value: Tensor) -> Pullback:
    return wrt(
        input=F.sum_to(F.masked_fill(grad, mask, 0), input.shape),
        value=F.to_dtype(F.sum_where(grad, mask), value.dtype),
    )


@linear(
    in_place=True,
    out=False,
    loops=False,
    found="torch and method",
    gradient_nodes="source: (grad)",
)
def masked_scatter(grad: Tensor, input: Tensor, mask: Tensor, source: Tensor) -> Pullback:
    return wrt(
        input=F.sum_to(F.masked_fill(grad, mask, 0), input.shape),
        source=F.masked_scatter_back(grad, mask, source.shape),
    )


@linear(refuses_integers=True, found="torch and method")
def select_scatter(grad: Tensor, input: Tensor, src: Tensor, dim: Dim, index: int) -> Pullback:
    return wrt(
        input=F.select_scatter(grad, F.zeros_in_shape(grad, src.shape), dim, index),
        src=F.to_dtype(F.select(grad, dim, index), src.dtype),
    )


@linear(refuses_integers=True, out_dtype="c_types", found="torch and method")
def slice_scatter(
    grad: Tensor, input: Tensor, src: Tensor, dim: Dim, start: int | None, end: int | None, step: int
) -> Pullback:
    return wrt(
        input=F.slice_scatter(grad, F.zeros_in_shape(grad, src.shape), dim, start, end, step),
        src=F.to_dtype(F.slice_view(grad, dim, start, end, step), src.dtype),
    )


@linear(refuses_integers=True, out=False, found="torch and method")
def diagonal_scatter(grad: Tensor, input: Tensor, src: Tensor, offset: int, dim1: Dim, dim2: Dim) -> Pullback:
    return wrt(
        input=F.diagonal_scatter(grad, F.zeros_in_shape(grad, src.shape), offset, dim1, dim2),
        src=F.to_dtype(F.diagonal(grad, offset, dim1, dim2), src.dtype),
    )


@linear(refuses_integers=True, out=False, found="torch and method")
def as_strided_scatter(
    grad: Tensor, input: Tensor, src: Tensor, size: Shape, stride: Shape, storage_offset: int | None
) -> Pullback:
    return wrt(
        input=F.as_strided_scatter(grad, F.zeros_in_shape(grad, src.shape), size, stride, storage_offset),
        src=F.to_dtype(F.strided_part(grad, size, stride, storage_offset), src.dtype),
    )


@self_adjoint(out=False, structure="elementwise", writes="fill", in_place_overload="fill_.Scalar")
def fill(grad: Tensor, input: Tensor, value: Scalar) -> Pullback:
    return wrt(input=F.zeros_in_shape_of(grad))


@self_adjoint(
    in_place=True,
    node="FillBackward2",
    out=False,
    structure="elementwise",
    aten="fill(input, value)",
    backward="wrt(input=zeros_like(grad))",
    writes="fill",
    in_place_overload="fill_.Scalar",
)
def fill_in_place(grad: Tensor, input: Tensor, value: Scalar) -> Pullback:
    return wrt(input=F.zeros_in_shape_of(grad))


@linear(node="FillBackward1", refuses_integers=True, out=False, profiled="fill_", in_place_overload="fill_.Tensor")
def fill_tensor(grad: Tensor, input: Tensor, value: Tensor) -> Pullback:
    return wrt(input=F.zeros_in_shape_of(grad), value=F.to_dtype(F.sum(grad, None, False), value.dtype))


@linear(
    in_place=True,
    node="FillBackward3",
    out=False,
    profiled="fill",
    aten="fill.Tensor(input, value)",
    writes="after_reading",
    in_place_overload="fill_.Tensor",
)
def fill_in_place_tensor(grad: Tensor, input: Tensor, value: Tensor) -> Pullback:
    return wrt(input=F.zeros_in_shape_of(grad), value=F.to_dtype(F.sum(grad, None, False), value.dtype))


@self_adjoint(
    in_place=True,
    out=False,
    structure="elementwise",
    backward="wrt(input=zeros_like(grad))",
    writes="fill",
    foreach=True,
)
def zero(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.zeros_in_shape_of(grad))
