"""Rules of kernels/along_dim.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, linear, tangent, wrt


@linear(out=False)
def take_along(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Pullback:
    return wrt(input=F.add_along(grad, indices, input.shape, dim))


@linear(out=False)
def take_reduced(grad: Tensor, input: Tensor, indices: Tensor, dim: int, keepdim: bool) -> Pullback:
    return wrt(input=F.put_reduced(grad, indices, input.shape, dim, keepdim))


@general(out=False)
def shift_and_fill(grad: Tensor, input: Tensor, dim: int, steps: int) -> Pullback:
    return wrt(input=F.shift_and_fill(grad, dim, -steps, 0))


@tangent
def shift_and_fill_tangent(input_tangent: Tensor, dim: int, steps: int) -> Tensor:
    return F.shift_and_fill(input_tangent, dim, steps, 0)
