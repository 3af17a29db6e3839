"""Rules of kernels/lu.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, linear, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    outputs=("LU", "pivots", "info"),
    differentiable=(True, False, False),
    structure="matrices",
    shows="pivot",
    out_dtype="c_types",
    returns=True,
)
def linalg_lu_factor_ex(grad: Tensor, A: Tensor, *, LU: Tensor, pivots: Tensor) -> Pullback:
    return wrt(A=F.lu_factor_back(grad, LU, pivots))


@general(
    outputs=("P", "L", "U"),
    differentiable=(False, True, True),
    structure="matrices",
    shows="pivot",
    out_dtype="c_types",
    returns=True,
)
def linalg_lu(grad_L: Tensor, grad_U: Tensor, A: Tensor, *, P: Tensor, L: Tensor, U: Tensor) -> Pullback:
    return wrt(A=F.matmul(P, F.lu_back(grad_L, grad_U, L, U)))


@general(
    outputs=("P", "L", "U"),
    differentiable=(False, True, True),
    structure="matrices",
    vectors=("LU_pivots",),
    out_dtype="c_types",
    returns=True,
)
def lu_unpack(grad_L: Tensor, grad_U: Tensor, LU_data: Tensor, unpack_data: bool) -> Pullback:
    return wrt(LU_data=F.lu_unpack_back(grad_L, grad_U, LU_data.shape, unpack_data))


@linear(out=False, structure="matrices", vectors=("pivots",))
def permute_rows(grad: Tensor, input: Tensor, pivots: Tensor, inverse: bool) -> Pullback:
    return wrt(input=F.sum_to(F.permute_rows(grad, pivots, not inverse), input.shape))


@general(structure="matrices", vectors=("pivots",), out_dtype="c_types")
def linalg_lu_solve(
    grad: Tensor, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool, *, result: Tensor
) -> Pullback:
    to_B = F.linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
    return wrt(
        LU=F.sum_to(F.lu_solve_back(to_B, result, LU, pivots, left, adjoint), LU.shape), B=F.sum_to(to_B, B.shape)
    )
