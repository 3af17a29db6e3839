"""Rules of kernels/joining.py."""

from __future__ import annotations

from pullback.rules import Arrays, Dim, F, Pullback, Shape, Tensor, linear, wrt


@linear(promote="common", autocast="widest", out_apart=True, asks=True, moves=True)
def cat(grad: Tensor, tensors: Arrays, dim: int) -> Pullback:
    return wrt(tensors=F.cat_back(grad, tensors.shape, tensors.dtype, dim))


@linear(promote="common", autocast="widest", asks=True, moves=True)
def stack(grad: Tensor, tensors: Arrays, dim: int) -> Pullback:
    return wrt(tensors=F.stack_back(grad, tensors.dtype, dim))


@linear(
    multi_view=True,
    backward="wrt(input=split_back(grads, input.shape, split_size, dim))",
    asks=True,
    bare=True,
    written_in="functional",
)
def split(grads: Tensor, input: Tensor, split_size: int, dim: Dim) -> Pullback:
    return wrt(input=F.split_back(grads, input.shape, input.dtype, split_size, dim))


@linear(multi_view=True, backward="wrt(input=split_back(grads, input.shape, split_sizes, dim))")
def split_with_sizes(grads: Tensor, input: Tensor, split_sizes: Shape, dim: Dim) -> Pullback:
    return wrt(input=F.split_with_sizes_back(grads, input.shape, input.dtype, split_sizes, dim))


@linear(multi_view=True, backward="wrt(input=unbind_back(grads, input.shape, dim))", asks=True, bare=True)
def unbind(grads: Tensor, input: Tensor, dim: Dim) -> Pullback:
    return wrt(input=F.unbind_back(grads, input.shape, input.dtype, dim))


@linear(promote="common", out=False, written_in="functional")
def block_diag(grad: Tensor, tensors: Arrays) -> Pullback:
    return wrt(tensors=F.block_diag_back(grad, tensors.shape, tensors.dtype))
