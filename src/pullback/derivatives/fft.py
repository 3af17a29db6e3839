"""Rules of kernels/fft.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, linear, non_differentiable, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@linear(node="FftC2CBackward0", out=False)
def fft_c2c(grad: Tensor, input: Tensor, dim: Shape, scale: str, forward: bool) -> Pullback:
    return wrt(input=F.fft_c2c(grad, dim, scale, not forward))


@linear(node="FftR2CBackward0", out=False)
def fft_r2c(grad: Tensor, input: Tensor, dim: Shape, scale: str, onesided: bool) -> Pullback:
    return wrt(input=F.fft_r2c_back(grad, dim, scale, onesided, input.shape))


@linear(node="FftC2RBackward0", out=False)
def fft_c2r(grad: Tensor, input: Tensor, dim: Shape, scale: str, last_size: int) -> Pullback:
    return wrt(input=F.fft_c2r_back(grad, dim, scale, input.shape))


@linear(out=False)
def double_conjugate_pairs(grad: Tensor, input: Tensor, dim: int, count: int) -> Pullback:
    return wrt(input=F.double_conjugate_pairs(grad, dim, count))


@linear(out=False, structure="leading")
def overlap_add(grad: Tensor, input: Tensor, step: int) -> Pullback:
    return wrt(input=F.unfold(grad, grad.ndim - 1, input.shape[-1], step))


@non_differentiable(out=False)
def check_envelope(input: Tensor, call: str) -> None: ...
