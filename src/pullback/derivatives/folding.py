"""Rules of kernels/folding.py: each rearrangement is undone by its inverse or adjoint."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, linear, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@linear(node="Im2ColBackward0", out=False, structure="samples", moves=True)
def im2col(grad: Tensor, input: Tensor, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Pullback:
    return wrt(input=F.col2im(grad, input.shape[-2:], kernel_size, dilation, padding, stride))


@linear(node="Col2ImBackward0", out=False, structure="samples", masked=True)
def col2im(grad: Tensor, input: Tensor, kernel_size: Shape, dilation: Shape, padding: Shape, stride: Shape) -> Pullback:
    return wrt(input=F.im2col(grad, kernel_size, dilation, padding, stride))


@linear(out=False, structure="leading", functional=True, written_in="c", found="torch")
def pixel_shuffle(grad: Tensor, input: Tensor, upscale_factor: int) -> Pullback:
    return wrt(input=F.pixel_unshuffle(grad, upscale_factor))


@linear(out=False, structure="leading", functional=True, written_in="c", found="torch")
def pixel_unshuffle(grad: Tensor, input: Tensor, downscale_factor: int) -> Pullback:
    return wrt(input=F.pixel_shuffle(grad, downscale_factor))


@linear(out=False, structure="samples", functional=True, written_in="c", found="torch")
def channel_shuffle(grad: Tensor, input: Tensor, groups: int) -> Pullback:
    return wrt(input=F.channel_shuffle(grad, input.shape[1] // groups))
