"""Triangular systems.

LAPACK's general solver, which NumPy has, does no elimination on an upper triangular matrix: it is then the substitution.
It serves stacks of small matrices; else the triangular solver is called (Note [LAPACK of NumPy]).
"""

from __future__ import annotations

import math

import numpy as np

from pullback.backend import lapack
from pullback.backend.unpromised_bits import note_factorization
from pullback.checks import checked
from pullback.kernels.matrix_checks import _broadcast_batches, _by_columns
from pullback.native import by_device, native
from pullback.typing import Array, Shape

# Up to this size the general solver is called; larger systems are halved, so that most of the work is one product.
_BLOCK = 64


def _solve_upper(A: Array, B: Array) -> Array:
    """X of AX = B for an upper triangular A, which must hold zeros below its diagonal."""
    size = A.shape[-1]
    if size > _BLOCK:
        half = size // 2
        lower = _solve_upper(A[..., half:, half:], B[..., half:, :])
        rest = B[..., :half, :] - A[..., :half, half:] @ lower
        return np.concatenate([_solve_upper(A[..., :half, :half], rest), lower], axis=-2)
    if np.all(np.diagonal(A, axis1=-2, axis2=-1) != 0):
        return np.linalg.solve(A, B)
    return _substitute_back(A, B)


def _substitute_back(A: Array, B: Array) -> Array:
    """Substitution row by row: a zero on the diagonal gives infinities, as in LAPACK's triangular solver."""
    shape = (*_broadcast_batches(A, B), *B.shape[-2:])
    X = np.array(np.broadcast_to(B, shape))
    for row in range(A.shape[-1] - 1, -1, -1):
        X[..., row, :] /= A[..., row, row, None]
        X[..., :row, :] -= A[..., :row, row, None] * X[..., row, None, :]
    return X


def _solve_left(A: Array, B: Array, *, upper: bool, unitriangular: bool) -> Array:
    note_factorization(A)
    if A.dtype == B.dtype and B.size:
        batch = _broadcast_batches(A, B)
        if lapack.serves(A, math.prod(batch), A.shape[-1]):
            return _substitute(A, B, batch, upper=upper, unitriangular=unitriangular)
    triangle = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        index = np.arange(A.shape[-1])
        triangle[..., index, index] = 1
    if upper:
        return _solve_upper(triangle, B)
    # Reversing rows and columns turns a lower triangular matrix into an upper one.
    return _solve_upper(triangle[..., ::-1, ::-1], B[..., ::-1, :])[..., ::-1, :]


def _substitute(A: Array, B: Array, batch: Shape, *, upper: bool, unitriangular: bool) -> Array:
    """By LAPACK's triangular solver, one matrix after the other."""
    size, count = A.shape[-1], math.prod(batch)
    X = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])).swapaxes(-1, -2), order="C")
    matrices = np.broadcast_to(A, (*batch, size, size))
    by_columns = matrices.swapaxes(-1, -2).flags.c_contiguous
    stack = matrices.swapaxes(-1, -2) if by_columns else np.ascontiguousarray(matrices)
    lapack.substitute(
        stack.reshape(count, size, size), X.reshape(count, -1, size), upper, unitriangular, by_columns=by_columns
    )
    return X.swapaxes(-1, -2)


@native
@checked
def linalg_solve_triangular(
    A: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """X of AX = B, or of XA = B, for a triangular A of which the other triangle is not read."""
    _broadcast_batches(A, B)
    if left:
        return _by_columns(_solve_left(A, B, upper=upper, unitriangular=unitriangular))
    flipped = _solve_left(A.swapaxes(-1, -2), B.swapaxes(-1, -2), upper=not upper, unitriangular=unitriangular)
    return _by_columns(flipped.swapaxes(-1, -2))


@by_device
@checked
def triangular_solve(
    input: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    """X of AX = b for a triangular A or its adjoint, and a copy of A."""
    batch = _broadcast_batches(A, input)
    matrix = np.broadcast_to(A, (*batch, *A.shape[-2:]))
    flipped = matrix.swapaxes(-1, -2).conj() if transpose else matrix
    solution = _solve_left(flipped, input, upper=upper != transpose, unitriangular=unitriangular)
    return _by_columns(solution), _by_columns(matrix).copy(order="K")
