"""Rules of kernels/solvers.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(outputs=("result", "info"), differentiable=(True, False), out_dtype="c_types", returns=True)
def linalg_solve_ex(grad: Tensor, A: Tensor, B: Tensor, left: bool, *, result: Tensor) -> Pullback:
    to_B = F.solve_adjoint(A, grad, left)
    return wrt(A=F.sum_to(F.solve_matrix_back(to_B, A, result, left), A.shape), B=F.sum_to(to_B, B.shape))


@general(structure="matrices", autocast="float32", found="torch and method")
def cholesky_solve(grad: Tensor, input: Tensor, input2: Tensor, upper: bool, *, result: Tensor) -> Pullback:
    to_input = F.cholesky_solve(grad, input2, upper)
    return wrt(
        input=F.sum_to(to_input, input.shape),
        input2=F.sum_to(F.cholesky_solve_back(to_input, result, input2, upper), input2.shape),
    )


@general(structure="matrices", autocast="float32", found="torch and method")
def cholesky_inverse(grad: Tensor, input: Tensor, upper: bool, *, result: Tensor) -> Pullback:
    return wrt(input=F.cholesky_inverse_back(grad, input, upper, result))


@general(
    outputs=("solution", "residuals", "rank", "singular_values"), differentiable=(True, True, False, False),
    autocast="float32",returns=True
)  # fmt: skip
def linalg_lstsq(grad_solution: Tensor, grad_residuals: Tensor, A: Tensor, B: Tensor, *, solution: Tensor) -> Pullback:
    return wrt(
        A=F.sum_to(F.lstsq_matrix_back(grad_solution, grad_residuals, A, B, solution), A.shape),
        B=F.sum_to(F.lstsq_right_back(grad_solution, grad_residuals, A, B, solution), B.shape),
    )
