"""Gradients of solutions of linear systems, in terms of further systems."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def solve_matrix_back(to_right: Any, A: Any, solution: Any, left: bool) -> Any:
    """The gradient of the matrix from that of the right-hand side: -grad_B X^H, or -X^H grad_B."""
    if solution.ndim == A.ndim - 1:
        return -(F.as_column(to_right) * F.as_row(F.conj(solution)))
    if left:
        return -F.matmul(to_right, F.adjoint_of(solution))
    return -F.matmul(F.adjoint_of(solution), to_right)


def solve_adjoint(A: Any, B: Any, left: bool) -> Any:
    """X of A^H X = B, or of X A^H = B: the gradient of a right-hand side."""
    return F.linalg_solve_ex(F.adjoint_of(A), B, left=left)[0]


def solve_triangular_back(to_right: Any, solution: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    """The gradient of a triangular matrix: that of a general one, of which the triangle counts."""
    if left:
        whole = -F.matmul(to_right, F.adjoint_of(solution))
    else:
        whole = -F.matmul(F.adjoint_of(solution), to_right)
    offset = 1 if unitriangular else 0
    return F.triu(whole, offset) if upper else F.tril(whole, -offset)


def triangular_right_back(grad: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    """The gradient of the right-hand side of `triangular_solve`."""
    return F.triangular_solve(grad, A, upper, not transpose, unitriangular)[0]


def triangular_matrix_back(to_right: Any, solution: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    """The gradient of the matrix of `triangular_solve`."""
    if transpose:
        whole = -F.matmul(solution, F.adjoint_of(to_right))
    else:
        whole = -F.matmul(to_right, F.adjoint_of(solution))
    offset = 1 if unitriangular else 0
    return F.triu(whole, offset) if upper else F.tril(whole, -offset)


def lu_solve_back(to_right: Any, solution: Any, LU: Any, pivots: Any, left: bool, adjoint: bool) -> Any:
    """The gradient of a packed LU factorization that solved a system."""
    if left:
        whole = -F.matmul(solution, F.adjoint_of(to_right)) if adjoint else -F.matmul(to_right, F.adjoint_of(solution))
    else:
        whole = -F.matmul(F.adjoint_of(to_right), solution) if adjoint else -F.matmul(F.adjoint_of(solution), to_right)
    exchanged = F.permute_rows(whole, pivots, False)
    lower = F.tril(F.matmul(exchanged, F.adjoint_of(F.upper_factor(LU))), -1)
    return lower + F.triu(F.matmul(F.adjoint_of(F.lower_factor(LU)), exchanged))


def cholesky_solve_back(to_right: Any, solution: Any, L: Any, upper: bool) -> Any:
    """The gradient of a Cholesky factor that solved a system."""
    product = F.matmul(to_right, F.adjoint_of(solution))
    both = product + F.adjoint_of(product)
    return -F.matmul(L, both) if upper else -F.matmul(both, L)


def cholesky_inverse_back(grad: Any, L: Any, upper: bool, inverse: Any) -> Any:
    """The gradient of a Cholesky factor that gave the inverse."""
    both = F.matmul(inverse, F.matmul(grad + F.adjoint_of(grad), inverse))
    return -F.matmul(L, both) if upper else -F.matmul(both, L)


def lstsq_right_back(grad_solution: Any, grad_residuals: Any, A: Any, B: Any, solution: Any) -> Any:
    """The gradient of the right-hand sides of least squares: pinv(A)^H grad_X - 2 (AX - B) grad_residuals."""
    vector = solution.ndim == A.ndim - 1
    grad = F.as_column(grad_solution) if vector else grad_solution
    result = F.matmul(F.adjoint_of(F.linalg_pinv(A, None, None, False)), grad)
    if grad_residuals.shape[-1] and not F.is_absent(grad_residuals):
        result = result - F.lstsq_distance(A, B, solution) * F.as_row(grad_residuals) * 2
    return F.squeeze_dims(result, (result.ndim - 1,)) if vector else result


def lstsq_matrix_back(grad_solution: Any, grad_residuals: Any, A: Any, B: Any, solution: Any) -> Any:
    """The gradient of the matrix of least squares, through its pseudoinverse."""
    vector = solution.ndim == A.ndim - 1
    grad = F.as_column(grad_solution) if vector else grad_solution
    right = F.as_column(B) if vector else B
    result = F.pinv_back(F.matmul(grad, F.adjoint_of(right)), A, F.linalg_pinv(A, None, None, False))
    if grad_residuals.shape[-1] and not F.is_absent(grad_residuals):
        found = F.as_column(solution) if vector else solution
        scaled = F.lstsq_distance(A, B, solution) * F.as_row(grad_residuals) * 2
        result = result + F.matmul(scaled, F.adjoint_of(found))
    return result


def lstsq_distance(A: Any, B: Any, solution: Any) -> Any:
    """AX - B with columns."""
    if solution.ndim == A.ndim - 1:
        return F.matmul(A, F.as_column(solution)) - F.as_column(B)
    return F.matmul(A, solution) - B
