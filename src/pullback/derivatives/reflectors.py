"""Rules of kernels/reflectors.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(structure="matrices", vectors=("tau",), autocast="float32")
def linalg_householder_product(grad: Tensor, input: Tensor, tau: Tensor) -> Pullback:
    back = F.reflectors_back(grad, input, tau, F.identity_like(input), False)
    return wrt(input=back[0], tau=back[1])


@general(
    structure="matrices",
    vectors=("input2",),
    autocast="float32",
    out_dtype="torch.ormqr: Expected input and result to have the same dtype, but input has dtype {0} and result {1}",
    found="torch and method",
)
def ormqr(grad: Tensor, input: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Pullback:
    back = F.ormqr_back(grad, input, input2, input3, left, transpose)
    return wrt(input=back[0], input2=back[1], input3=F.ormqr(input, input2, grad, left, not transpose))
