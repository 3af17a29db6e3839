"""Rules of kernels/triangular.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(structure="matrices", out_dtype="scalar_type")
def linalg_solve_triangular(
    grad: Tensor, A: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool, *, result: Tensor
) -> Pullback:
    to_B = F.linalg_solve_triangular(F.adjoint_of(A), grad, upper=not upper, left=left, unitriangular=unitriangular)
    return wrt(
        A=F.sum_to(F.solve_triangular_back(to_B, result, upper, left, unitriangular), A.shape),
        B=F.sum_to(to_B, B.shape),
    )


@general(
    outputs=("solution", "cloned_coefficient"),
    structure="matrices",
    autocast="float32",
    out_dtype="c_types",
    returns=True,
)
def triangular_solve(
    grad_solution: Tensor, grad_cloned_coefficient: Tensor, input: Tensor, A: Tensor, upper: bool, transpose: bool,
    unitriangular: bool, *, solution: Tensor,
) -> Pullback:  # fmt: skip
    to_input = F.triangular_right_back(grad_solution, A, upper, transpose, unitriangular)
    to_A = F.triangular_matrix_back(to_input, solution, upper, transpose, unitriangular)
    return wrt(input=F.sum_to(to_input, input.shape), A=F.sum_to(to_A + grad_cloned_coefficient, A.shape))
