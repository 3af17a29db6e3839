"""Rules of kernels/reductions.py."""

from __future__ import annotations

from pullback.rules import Dims, F, Pullback, Tensor, linear, wrt


@linear
def sum(grad: Tensor, input: Tensor, dim: Dims, keepdim: bool) -> Pullback:
    return wrt(input=F.to_dtype(F.expand_reduced(grad, input.shape, dim, keepdim), input.dtype))
