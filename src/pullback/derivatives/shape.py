"""Rules of kernels/shape.py."""

from __future__ import annotations

from typing import Any

from pullback.rules import (
    Dim,
    DType,
    F,
    Pullback,
    Shape,
    Tensor,
    linear,
    non_differentiable,
    wrt,
)


@linear(structure="elementwise", complex32=True, bare=True, same_values=True, moves=True)
def clone(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad)


@linear(node="ToCopyBackward0", out=False, structure="elementwise", profiled="clone", same_values=True, moves=True)
def copy_to(grad: Tensor, input: Tensor, order: str) -> Pullback:
    return wrt(input=grad)


@linear(
    node="CloneBackward0",
    out=False,
    aten="clone(input, memory_format=memory_format(order))",
    same_values=True,
    moves=True,
)
def contiguous_copy(grad: Tensor, input: Tensor, order: str) -> Pullback:
    return wrt(input=grad)


@linear(
    structure="elementwise",
    aten="_to_copy(input, dtype=dtype)",
    backward="wrt(input=converted_back(grad, input.dtype))",
    complex32=True,
    same_values=True,
)
def to_copy(grad: Tensor, input: Tensor, dtype: DType) -> Pullback:
    return wrt(input=F.to_dtype(grad, input.dtype))


@linear(node="ToCopyBackward0", out=False, structure="elementwise", aten="_to_copy(input, device=place)")
def to_device(grad: Tensor, input: Tensor, place: Any, origin: Any) -> Pullback:
    return wrt(input=F.to_device(grad, origin, place))


@non_differentiable(structure="elementwise", aten="_to_copy(input, dtype=dtype)")
def to_integer(input: Tensor, dtype: DType) -> None: ...


@linear(node="torch::autograd::CopyBackwards", in_place=True, out=False, structure="elementwise", foreach=True)
def copy(grad: Tensor, input: Tensor, src: Tensor) -> Pullback:
    return wrt(input=F.zeros_in_shape_of(grad), src=F.sum_to_like(grad, src.shape, src.dtype))


@non_differentiable(out=False)
def zeros_in_shape(input: Tensor, shape: Shape) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def zeros_in_shape_of(input: Tensor) -> None: ...


@linear(view=True, structure="elementwise", same_values=True)
def alias(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=grad)


@linear(view=True, bare=True, same_values=True, method_alone=True)
def view(grad: Tensor, input: Tensor, size: Shape) -> Pullback:
    return wrt(input=F.reshape(grad, input.shape))


@linear(out=False, aten="_unsafe_view(input, size)", same_values=True, moves=True)
def unsafe_view(grad: Tensor, input: Tensor, size: Shape) -> Pullback:
    return wrt(input=F.reshape(grad, input.shape))


@linear(view=True, bare=True, same_values=True, method_alone=True)
def expand(grad: Tensor, input: Tensor, size: Shape) -> Pullback:
    return wrt(input=F.expand_back(grad, input.shape))


@linear(view=True, found="torch and method")
def transpose(grad: Tensor, input: Tensor, dim0: Dim, dim1: Dim) -> Pullback:
    return wrt(input=F.transpose(grad, dim0, dim1))


@linear(view=True, bare=True, method_alone=True)
def permute(grad: Tensor, input: Tensor, dims: Shape) -> Pullback:
    return wrt(input=F.permute_back(grad, dims))


@linear(view=True, method_alone=True, found="torch and method")
def t(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.t(grad))


@linear(view=True, backward="wrt(input=squeeze(grad, dim))", asks=True, bare=True)
def unsqueeze(grad: Tensor, input: Tensor, dim: int) -> Pullback:
    return wrt(input=F.squeeze_dim(grad, dim))


@linear(view=True, asks=True, bare=True, masked=False)
def squeeze(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.unsqueezed_to(grad, input.shape))


@linear(
    view=True,
    node="SqueezeBackward1",
    public="squeeze",
    backward="wrt(input=with_dim(grad, input.shape))",
    shows="dim",
    masked=False,
)
def squeeze_dim(grad: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.unsqueeze(grad, dim) if grad.ndim < input.ndim else grad)


@linear(view=True, node="SqueezeBackward2", public="squeeze", shows="dim", masked=False)
def squeeze_dims(grad: Tensor, input: Tensor, dim: Shape) -> Pullback:
    return wrt(input=F.unsqueezed_to(grad, input.shape, dim))


@linear(
    view=True,
    backward="diagonal_backward(grad, input.shape, offset, dim1, dim2)",
    found="torch and method",
    gradient_nodes="(grad)",
)
def diagonal(grad: Tensor, input: Tensor, offset: int, dim1: Dim, dim2: Dim) -> Pullback:
    return wrt(input=F.diagonal_back(grad, input.shape, offset, dim1, dim2))


@linear(view=True, method_alone=True, found="method", gradient_nodes="(grad)")
def unfold(grad: Tensor, input: Tensor, dimension: Dim, size: int, step: int) -> Pullback:
    return wrt(input=F.unfold_back(grad, input.shape, dimension, size, step))


@linear(view=True, bare=True, aten="as_strided(input, size, stride, storage_offset)")
def as_strided(
    grad: Tensor, input: Tensor, size: Shape, stride: Shape, storage_offset: int | None, input_stride: Shape,
    input_offset: int, examples: int,
) -> Pullback:  # fmt: skip
    return wrt(
        input=F.as_strided_back(grad, input.shape, input_stride, input_offset, size, stride, storage_offset, examples)
    )


@linear(view="replay", structure="elementwise", complex32=True)
def view_as_real(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.complex_from_pairs(grad))


@linear(view="replay", autocast="float32", complex32=True, found="torch")
def view_as_complex(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.pairs_from_complex(grad))


@non_differentiable(structure="elementwise", fresh=True, exact=True)
def zeros_of(input: Tensor) -> None: ...
