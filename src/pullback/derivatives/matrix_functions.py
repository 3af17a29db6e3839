"""Rules of kernels/matrix_functions.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, non_differentiable, tangent, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(structure="matrices", out_dtype="c_types")
def linalg_det(grad: Tensor, A: Tensor, *, result: Tensor) -> Pullback:
    return wrt(A=F.det_back(grad, A, result))


@general(
    outputs=("sign", "logabsdet"),
    structure="matrices",
    out_dtype="c_types",
    returns=True,
    breaks="on singular matrices",
)
def linalg_slogdet(grad_sign: Tensor, grad_logabsdet: Tensor, A: Tensor, *, sign: Tensor) -> Pullback:
    return wrt(A=F.slogdet_back(grad_sign, grad_logabsdet, A, sign))


@general(
    outputs=("inverse", "info"),
    differentiable=(True, False),
    structure="matrices",
    autocast="float32",
    out_dtype="c_types",
    returns=True,
)
def linalg_inv_ex(grad: Tensor, A: Tensor, *, inverse: Tensor) -> Pullback:
    return wrt(A=F.inverse_back(grad, inverse))


@tangent
def linalg_inv_ex_tangent(A_tangent: Tensor, *, inverse: Tensor) -> Tensor:
    return (-F.matmul(inverse, F.matmul(A_tangent, inverse)), None)


@general
def linalg_pinv(grad: Tensor, A: Tensor, *, result: Tensor) -> Pullback:
    return wrt(A=F.pinv_back(grad, A, result))


@general(out=False, structure="matrices")
def linalg_matrix_exp(grad: Tensor, A: Tensor) -> Pullback:
    return wrt(A=F.matrix_exp_back(grad, A))


@non_differentiable(autocast="float32")
def linalg_matrix_rank(input: Tensor) -> None: ...
