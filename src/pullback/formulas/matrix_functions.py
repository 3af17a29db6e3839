"""Gradients of determinants, inverses and exponentials."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def over_matrices(values: Any) -> Any:
    """One number per matrix, with two dimensions of size 1."""
    return F.as_column(F.as_column(values))


def inverse_back(grad: Any, inverse: Any) -> Any:
    """-A^-H grad A^-H."""
    return -F.matmul(F.adjoint_of(inverse), F.matmul(grad, F.adjoint_of(inverse)))


def det_back(grad: Any, A: Any, result: Any) -> Any:
    """grad times the adjoint of the adjugate: det(A) A^-1, or from the singular values if A has no inverse."""
    from pullback.kernels.matrix_functions import any_singular

    if A.shape[-1] == 0:
        return F.zeros_in_shape_of(A)
    if A.shape[-1] == 1:
        return F.over_matrices(grad)
    if not any_singular(getattr(A, "_array", A), getattr(result, "_array", result)):
        return F.over_matrices(grad * F.conj(result)) * F.adjoint_of(F.linalg_inv_ex(A)[0])
    U, S, Vh = F.linalg_svd(A, False)
    phase = F.conj(F.linalg_det(U) * F.linalg_det(Vh))
    return F.over_matrices(grad * phase) * F.matmul(U * F.as_row(F.product_of_others(S, S.ndim - 1)), Vh)


def slogdet_back(grad_sign: Any, grad_logabsdet: Any, A: Any, sign: Any) -> Any:
    """(grad_log - i Im(conj(grad_sign) sign)) A^-H; the sign of a real determinant has no slope."""
    inverse = F.adjoint_of(F.linalg_inv_ex(A)[0])
    if not F.is_complex_value(A):
        return F.over_matrices(grad_logabsdet) * inverse
    turning = F.imaginary_part(F.conj(grad_sign) * sign)
    return F.over_matrices(F.complex(grad_logabsdet, -turning)) * inverse


def pinv_back(grad: Any, A: Any, pinv: Any) -> Any:
    """-P^H grad P^H + (1 - AP) grad^H P P^H + P^H P grad^H (1 - PA) for P = pinv(A)."""
    flipped, grad_flipped = F.adjoint_of(pinv), F.adjoint_of(grad)
    first = F.matmul(grad_flipped, F.matmul(pinv, flipped))
    second = F.matmul(F.matmul(flipped, pinv), grad_flipped)
    result = first - F.matmul(A, F.matmul(pinv, first)) + second - F.matmul(F.matmul(second, pinv), A)
    return result - F.matmul(flipped, F.matmul(grad, flipped))


def matrix_exp_back(grad: Any, A: Any) -> Any:
    """The upper right block of exp([[A^H, grad], [0, A^H]])."""
    flipped, last, size = F.adjoint_of(A), A.ndim - 1, A.shape[-1]
    top = F.cat([flipped, grad], last)
    bottom = F.cat([F.zeros_in_shape_of(flipped), flipped], last)
    whole = F.linalg_matrix_exp(F.cat([top, bottom], last - 1))
    return F.columns_of(F.rows_of(whole, 0, size), size, 2 * size)


def reflector_vectors(input: Any, count: int) -> Any:
    """The vectors of the reflectors as columns."""
    left = F.columns_of(input, 0, count)
    return F.tril(left, -1) + F.identity_like(left)


def reflectors_back(grad: Any, input: Any, tau: Any, other: Any, transpose: bool) -> Any:
    """The gradients of Q `other` (or Q^H `other`) with respect to the reflectors and to their factors.

    One reflector after the other: with S the product of those that were applied before it, times `other`, and G the
    gradient seen from behind it, grad_v = -conj(t) G S^H v - t S G^H v and grad_t = -v^H G S^H v.
    """
    count = tau.shape[-1]
    if count == 0 or 0 in input.shape:
        return None, None
    vectors = F.reflector_vectors(input, count)
    factors = F.conj(tau) if transpose else tau
    columns = [F.columns_of(vectors, i, i + 1) for i in range(count)]
    scales = [F.columns_of(F.as_row(factors), i, i + 1) for i in range(count)]
    order = list(range(count - 1, -1, -1)) if transpose else list(range(count))
    before = [other]
    for i in order[:0:-1]:
        before.append(F.reflect(columns[i], scales[i], before[-1]))
    to_vectors: list[Any] = [None] * count
    to_scales: list[Any] = [None] * count
    for i, seen in zip(order, before[::-1], strict=True):
        along = F.matmul(grad, F.matmul(F.adjoint_of(seen), columns[i]))
        across = F.matmul(seen, F.matmul(F.adjoint_of(grad), columns[i]))
        to_scales[i] = -F.matmul(F.adjoint_of(columns[i]), along)
        to_vectors[i] = -(F.conj(scales[i]) * along) - scales[i] * across
        grad = F.reflect(columns[i], F.conj(scales[i]), grad)
    to_input = F.tril(F.cat(to_vectors, input.ndim - 1), -1)
    to_tau = F.reshape(F.cat(to_scales, input.ndim - 1), tuple(tau.shape))
    padded = F.slice_back(to_input, tuple(input.shape), input.ndim - 1, 0, count, 1)
    return padded, F.conj(to_tau) if transpose else to_tau


def reflect(vector: Any, scale: Any, matrix: Any) -> Any:
    """(1 - scale v v^H) times a matrix."""
    return matrix - vector * (scale * F.matmul(F.adjoint_of(vector), matrix))


def ormqr_back(grad: Any, input: Any, tau: Any, other: Any, left: bool, transpose: bool) -> Any:
    """The gradients of reflectors and factors of `ormqr`; a product from the right is that from the left, flipped."""
    if left:
        return F.reflectors_back(grad, input, tau, other, transpose)
    return F.reflectors_back(F.adjoint_of(grad), input, tau, F.adjoint_of(other), not transpose)
