"""Rules of kernels/norms.py."""

from __future__ import annotations

from pullback.rules import Dims, F, Pullback, Scalar, Tensor, elementwise, general, wrt


@general
def linalg_vector_norm(
    grad: Tensor, input: Tensor, ord: Scalar, dim: Dims, keepdim: bool, *, result: Tensor
) -> Pullback:
    return wrt(input=F.vector_norm_grad(grad, input, ord, dim, keepdim, result))


@elementwise(out=False, promote="common")
def div_or_zero(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(
        input=F.div_or_zero(grad, F.conj(other)),
        other=-F.div_or_zero(grad * F.conj(F.div_or_zero(input, other)), F.conj(other)),
    )


@elementwise(out=False)
def pow_or_zero(grad: Tensor, input: Tensor, exponent: float) -> Pullback:
    return wrt(input=grad * (F.pow_or_zero(input, exponent - 1) * exponent))
