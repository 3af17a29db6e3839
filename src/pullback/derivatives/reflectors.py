"""Rules of kernels/reflectors.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, wrt


@general
def linalg_householder_product(grad: Tensor, input: Tensor, tau: Tensor) -> Pullback:
    back = F.reflectors_back(grad, input, tau, F.identity_like(input), False)
    return wrt(input=back[0], tau=back[1])


@general
def ormqr(grad: Tensor, input: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool) -> Pullback:
    back = F.ormqr_back(grad, input, tau, other, left, transpose)
    return wrt(input=back[0], tau=back[1], other=F.ormqr(input, tau, grad, left, not transpose))
