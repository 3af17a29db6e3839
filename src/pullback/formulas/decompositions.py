"""Gradients of decompositions.

Each follows from differentiating the decomposition's equations. Vectors that are determined only up to a phase have a
gradient only if the loss does not depend on it, which is checked.
"""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.typing import Shape


def adjoint_of(matrix: Any) -> Any:
    """The conjugate transpose."""
    return F.conj(F.transpose(matrix, matrix.ndim - 2, matrix.ndim - 1))


def diagonal_of(matrix: Any) -> Any:
    """The diagonal of the last two dimensions."""
    return F.diagonal(matrix, 0, matrix.ndim - 2, matrix.ndim - 1)


def diagonal_matrix(vector: Any) -> Any:
    """Matrices with vectors on their diagonals."""
    return F.diag_embed(vector, 0, vector.ndim - 1, vector.ndim)


def as_row(vector: Any) -> Any:
    """Vectors as matrices of one row."""
    return F.unsqueeze(vector, vector.ndim - 1)


def as_column(vector: Any) -> Any:
    """Vectors as matrices of one column."""
    return F.unsqueeze(vector, vector.ndim)


def columns_of(matrix: Any, start: int, end: int) -> Any:
    """Some columns of matrices."""
    return F.slice_view(matrix, matrix.ndim - 1, start, end, 1)


def rows_of(matrix: Any, start: int, end: int) -> Any:
    """Some rows of matrices."""
    return F.slice_view(matrix, matrix.ndim - 2, start, end, 1)


def is_absent(grad: Any) -> bool:
    """Whether a gradient is that of a result which nothing used: zeros, and not recorded."""
    from pullback.backend.logical_array import has_values

    array = getattr(grad, "_array", grad)
    return has_values(array) and not getattr(grad, "_requires_grad", False) and not array.any()


def off_diagonal_quotient(matrix: Any, differences: Any) -> Any:
    """The quotient off the diagonal, on which both are zero, and zero on it."""
    without = matrix - diagonal_matrix(diagonal_of(matrix))
    return without / (differences + F.identity_like(matrix))


def check_phase(diagonal: Any, message: str) -> None:
    """Refuse a gradient that depends on the arbitrary phases of vectors."""
    from pullback.kernels.decompositions import depends_on_phase

    if depends_on_phase(getattr(diagonal, "_array", diagonal)):
        raise RuntimeError(
            f"{message} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss "
            "function depends on this phase, so it is ill-defined. Use a function of the vectors that does not change "
            "when they are multiplied by one."
        )


def cholesky_back(grad: Any, L: Any, upper: bool) -> Any:
    """L^-H phi(L^H grad) L^-1, where phi mirrors the strict lower triangle and halves the whole."""
    if upper:
        L, grad = adjoint_of(L), adjoint_of(grad)
    product = F.matmul(adjoint_of(L), grad)
    mirrored = (F.tril(product) + adjoint_of(F.tril(product, -1))) * 0.5
    inner = F.linalg_solve_triangular(adjoint_of(L), mirrored, upper=True)
    return F.linalg_solve_triangular(L, inner, upper=False, left=False)


def cholesky_forward(tangent: Any, L: Any, upper: bool) -> Any:
    """L phi(L^-1 A' L^-H), where phi takes the lower triangle and half of the diagonal."""
    if upper:
        L = adjoint_of(L)
    left = F.linalg_solve_triangular(L, tangent, upper=False)
    product = F.linalg_solve_triangular(adjoint_of(L), left, upper=True, left=False)
    result = F.matmul(L, (F.tril(product) + F.tril(product, -1)) * 0.5)
    return adjoint_of(result) if upper else result


def qr_back(grad_Q: Any, grad_R: Any, Q: Any, R: Any, mode: str) -> Any:
    """The gradient of QR; of a wide matrix only the square part on the left is decomposed."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to use its derivatives."
        )
    rows, columns = Q.shape[-2], R.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. Use "
            "mode='reduced', whose Q holds the columns that are determined."
        )
    if rows >= columns:
        return tall_qr_back(grad_Q, grad_R, Q, R)
    right, grad_right = columns_of(R, rows, columns), columns_of(grad_R, rows, columns)
    to_Q = grad_Q + F.matmul(F.matmul(Q, right), adjoint_of(grad_right))
    left = tall_qr_back(to_Q, columns_of(grad_R, 0, rows), Q, columns_of(R, 0, rows))
    return F.cat([left, F.matmul(Q, grad_right)], left.ndim - 1)


def tall_qr_back(grad_Q: Any, grad_R: Any, Q: Any, R: Any) -> Any:
    """(grad_Q + Q s(triu(M))) R^-H with M = grad_R R^H - Q^H grad_Q; s mirrors the triangle, its diagonal made real."""
    product = F.matmul(grad_R, adjoint_of(R)) - F.matmul(adjoint_of(Q), grad_Q)
    triangle = F.triu(product)
    mirrored = triangle + adjoint_of(triangle) - diagonal_matrix(F.real_part(diagonal_of(product)))
    return F.linalg_solve_triangular(adjoint_of(R), grad_Q + F.matmul(Q, mirrored), upper=False, left=False)


def svd_back(grad_U: Any, grad_S: Any, grad_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    """The gradient of the singular value decomposition; of full matrices the first columns count."""
    length = S.shape[-1]
    rows, columns = U.shape[-2], Vh.shape[-1]
    U, Vh = columns_of(U, 0, length), rows_of(Vh, 0, length)
    if is_absent(grad_U) and is_absent(grad_Vh):
        return F.matmul(U * as_row(grad_S), Vh)
    grad_U, grad_Vh = columns_of(grad_U, 0, length), rows_of(grad_Vh, 0, length)
    to_U, to_V = F.matmul(adjoint_of(U), grad_U), F.matmul(Vh, adjoint_of(grad_Vh))
    to_U, to_V = to_U - adjoint_of(to_U), to_V - adjoint_of(to_V)
    check_phase(diagonal_of(to_U + to_V), "svd_backward: The singular vectors")
    square = S * S
    differences = as_row(square) - as_column(square)
    left = off_diagonal_quotient(to_U, differences) * as_row(S)
    inner = left + off_diagonal_quotient(to_V, differences) * as_column(S)
    inner = inner + diagonal_matrix(diagonal_of(to_U) / (S * 2) + grad_S)
    result = F.matmul(F.matmul(U, inner), Vh)
    if rows > length:
        outside = grad_U - F.matmul(U, F.matmul(adjoint_of(U), grad_U))
        result = result + F.matmul(outside / as_row(S), Vh)
    if columns > length:
        outside = grad_Vh - F.matmul(F.matmul(grad_Vh, adjoint_of(Vh)), Vh)
        result = result + F.matmul(U, outside / as_column(S))
    return result


def eigh_back(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any) -> Any:
    """V (diag(grad_L) + the Hermitian part of (V^H grad_V) / E) V^H with E_ij = L_j - L_i."""
    if is_absent(grad_vectors):
        return F.matmul(vectors * as_row(grad_values), adjoint_of(vectors))
    product = F.matmul(adjoint_of(vectors), grad_vectors)
    check_phase(diagonal_of(product), "linalg_eigh_backward: The eigenvectors")
    quotient = off_diagonal_quotient(product, as_row(values) - as_column(values))
    inner = (quotient + adjoint_of(quotient)) * 0.5 + diagonal_matrix(grad_values)
    return F.matmul(F.matmul(vectors, inner), adjoint_of(vectors))


def eigh_forward(tangent: Any, values: Any, vectors: Any) -> Any:
    """The tangents of eigenvalues and eigenvectors: the diagonal of V^H A' V, and V (V^H A' V / E)."""
    product = F.matmul(F.matmul(adjoint_of(vectors), tangent), vectors)
    turned = F.matmul(vectors, off_diagonal_quotient(product, as_row(values) - as_column(values)))
    return F.real_part(diagonal_of(product)), turned


def eig_back(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any) -> Any:
    """V^-H (diag(grad_L) + (V^H grad_V - V^H V Re diag(V^H grad_V)) / conj(E)) V^H with E_ij = L_j - L_i.

    The second term keeps the norms of the vectors at one.
    """
    flipped = adjoint_of(vectors)
    if is_absent(grad_vectors):
        return F.linalg_solve_ex(flipped, as_column(grad_values) * flipped)[0]
    product = F.matmul(flipped, grad_vectors)
    diagonal = diagonal_of(product)
    check_phase(diagonal, "linalg_eig_backward: The eigenvectors")
    product = product - F.matmul(flipped, vectors) * as_row(F.real_part(diagonal))
    differences = F.conj(as_row(values) - as_column(values))
    inner = off_diagonal_quotient(product, differences) + diagonal_matrix(grad_values)
    return F.linalg_solve_ex(flipped, F.matmul(inner, flipped))[0]


def lower_factor(LU: Any) -> Any:
    """L of a packed LU factorization."""
    left = columns_of(LU, 0, min(LU.shape[-2:]))
    return F.tril(left, -1) + F.identity_like(left)


def upper_factor(LU: Any) -> Any:
    """U of a packed LU factorization."""
    return F.triu(rows_of(LU, 0, min(LU.shape[-2:])))


def lu_back(grad_L: Any, grad_U: Any, L: Any, U: Any) -> Any:
    """The gradient of LU with respect to the matrix with its rows exchanged; only its square part is factorized."""
    rows, columns = L.shape[-2], U.shape[-1]
    length = min(rows, columns)
    if rows < columns:
        right = columns_of(U, length, columns)
        below = F.linalg_solve_triangular(
            adjoint_of(L), columns_of(grad_U, length, columns), upper=True, unitriangular=True
        )
        to_L = grad_L - F.matmul(below, adjoint_of(right))
        left = square_lu_back(to_L, columns_of(grad_U, 0, length), L, columns_of(U, 0, length))
        return F.cat([left, below], left.ndim - 1)
    if rows > columns:
        bottom = rows_of(L, length, rows)
        to_bottom = F.linalg_solve_triangular(adjoint_of(U), rows_of(grad_L, length, rows), upper=False, left=False)
        to_U = grad_U - F.matmul(adjoint_of(bottom), to_bottom)
        top = square_lu_back(rows_of(grad_L, 0, length), to_U, rows_of(L, 0, length), U)
        return F.cat([top, to_bottom], top.ndim - 2)
    return square_lu_back(grad_L, grad_U, L, U)


def square_lu_back(grad_L: Any, grad_U: Any, L: Any, U: Any) -> Any:
    """L^-H (tril(L^H grad_L, -1) + triu(grad_U U^H)) U^-H."""
    inner = F.tril(F.matmul(adjoint_of(L), grad_L), -1) + F.triu(F.matmul(grad_U, adjoint_of(U)))
    half = F.linalg_solve_triangular(adjoint_of(L), inner, upper=True, unitriangular=True)
    return F.linalg_solve_triangular(adjoint_of(U), half, upper=False, left=False)


def lu_factor_back(grad: Any, LU: Any, pivots: Any) -> Any:
    """The gradient of a packed LU factorization."""
    length = min(LU.shape[-2:])
    inner = lu_back(
        columns_of(grad, 0, length), rows_of(F.triu(grad), 0, length), F.lower_factor(LU), F.upper_factor(LU)
    )
    return F.permute_rows(inner, pivots, True)


def lu_unpack_back(grad_L: Any, grad_U: Any, shape: Shape, unpack_data: bool) -> Any:
    """The gradients of both factors in one matrix."""
    if not unpack_data:
        return F.zeros_in_shape(grad_L, shape)
    length = min(shape[-2:])
    ndim = len(shape)
    lower = F.slice_back(F.tril(grad_L, -1), shape, ndim - 1, 0, length, 1)
    return lower + F.slice_back(F.triu(grad_U), shape, ndim - 2, 0, length, 1)
