"""Rules of kernels/rearranging.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, linear, wrt


@linear(out=False, fresh=True, moves=True)
def flip(grad: Tensor, input: Tensor, dims: Shape) -> Pullback:
    return wrt(input=F.flip(grad, dims))


@linear(out=False, moves=True)
def roll(grad: Tensor, input: Tensor, shifts: Shape, dims: Shape) -> Pullback:
    return wrt(input=F.roll_back(grad, shifts, dims))


@linear(out=False, fresh=True, moves=True)
def rot90(grad: Tensor, input: Tensor, k: int, dims: Shape) -> Pullback:
    return wrt(input=F.rot90(grad, -k, dims))


@linear(
    out=False, backward="wrt(input=repeat_back(grad, input.shape, repeats))", bare=True, method_alone=True, moves=True
)
def repeat(grad: Tensor, input: Tensor, repeats: Shape) -> Pullback:
    return wrt(input=F.repeat_back(grad, input.shape, repeats))


@linear(in_place=True, out_dtype="c_types", fresh=True, writes="fill", found="torch and method")
def tril(grad: Tensor, input: Tensor, diagonal: int) -> Pullback:
    return wrt(input=F.tril(grad, diagonal))


@linear(in_place=True, out_dtype="c_types", fresh=True, writes="fill", found="torch and method")
def triu(grad: Tensor, input: Tensor, diagonal: int) -> Pullback:
    return wrt(input=F.triu(grad, diagonal))


@linear(out=False)
def diag_embed(grad: Tensor, input: Tensor, offset: int, dim1: int, dim2: int) -> Pullback:
    return wrt(input=F.diagonal(grad, offset, dim1, dim2))
