"""Systems of linear equations, by a general matrix, by its Cholesky factor, and in the least-squares sense."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend import lapack
from pullback.backend.dtype import real_of
from pullback.backend.unpromised_bits import note_factorization
from pullback.checks import checked
from pullback.checks.elements import failed_factorization
from pullback.checks.matrices import is_vector
from pullback.kernels.lu import _factorize
from pullback.kernels.matrix_checks import _broadcast_batches, _by_columns, _raise_for_info
from pullback.kernels.triangular import _solve_left
from pullback.native import by_device, native
from pullback.typing import Array, Shape


@by_device
@checked
def linalg_solve_ex(A: Array, B: Array, *, left: bool = True, check_errors: bool = False) -> tuple[Array, Array]:
    """X of AX = B (or XA = B), and the position of the zero on the diagonal of U if A is singular."""
    vector = is_vector(A.shape, B.shape)
    result, info = _solve(A, B[..., None] if vector else B, left)
    if check_errors:
        _raise_for_info("torch.linalg.solve_ex", info, "The solver failed because the input matrix is singular.")
    return (result[..., 0] if vector else result), info


@by_device
def check_solution(info: Array) -> None:
    """Raise if linalg.solve met a singular matrix."""
    _raise_for_info("torch.linalg.solve", info, "The solver failed because the input matrix is singular.")


@native
def _solve(A: Array, B: Array, left: bool) -> tuple[Array, Array]:
    if not left:
        flipped, info = _solve(A.swapaxes(-1, -2), B.swapaxes(-1, -2), True)
        return flipped.swapaxes(-1, -2), info
    _broadcast_batches(A, B)
    note_factorization(A)
    try:
        return _by_columns(np.linalg.solve(A, B)), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = np.asarray(_factorize(A)[2])
        singular = (info != 0)[..., None, None]
        result = np.linalg.solve(np.where(singular, np.eye(A.shape[-1], dtype=A.dtype), A), B)
        return np.where(singular, np.array(np.nan, A.dtype), result), info


@native
@checked
def cholesky_solve(input: Array, input2: Array, upper: bool = False) -> Array:
    """X of AX = `input` from the Cholesky factor `input2` of A.

    `input` is (..., n, k) and the factor (..., n, n): A = L @ L.mH, or U.mH @ U if `upper`.

    >>> import pullback
    >>> pullback.cholesky_solve(pullback.ones(2, 1), 2 * pullback.eye(2))
    tensor([[0.2500],
            [0.2500]])
    """
    L = input2
    _broadcast_batches(L, input)
    flipped = L.swapaxes(-1, -2).conj()
    lower, adjoint = (flipped, L) if upper else (L, flipped)
    half = _solve_left(lower, input, upper=False, unitriangular=False)
    return _by_columns(_solve_left(adjoint, half, upper=True, unitriangular=False))


@by_device
@checked
def cholesky_inverse(input: Array, upper: bool = False) -> Array:
    """The inverse of a matrix from its Cholesky factor.

    For L of shape (..., n, n) the inverse of L @ L.mH, or of U.mH @ U if `upper`.

    >>> import pullback
    >>> pullback.cholesky_inverse(pullback.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    if input.size == 0:
        return input.copy()
    zero = np.diagonal(input, axis1=-2, axis2=-1) == 0
    _raise_for_info("cholesky_inverse", np.where(zero.any(-1), zero.argmax(-1) + 1, 0),
                    "The diagonal element {info} is zero, the inversion could not be completed because the input matrix "
                    "is singular.")  # fmt: skip
    identity = np.broadcast_to(np.eye(input.shape[-1], dtype=input.dtype), input.shape)
    return cholesky_solve(identity, input, upper)


_NOT_FULL_RANK = (
    "The least squares solution could not be computed because the input matrix does not have full rank "
    "(error code: {info})."
)


@by_device
@checked
def linalg_lstsq(
    A: Array, B: Array, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """The X of least norm for which AX is nearest to B, the squared distances, the ranks and the singular values."""
    note_factorization(A)
    vector = is_vector(A.shape, B.shape)
    right = B[..., None] if vector else B
    chosen = driver or "gelsy"
    batch = _broadcast_batches(A, right)
    cutoff = (max(A.shape[-2:]) * float(np.finfo(A.dtype).eps)) if rcond is None else rcond
    if not np.isfinite(A).all():
        raise failed_factorization("torch.linalg.lstsq: The input matrix contained non-finite values.")
    if chosen in ("gels", "gelsy") and right.size and lapack.finds_routines(A):
        solution, rank = _factorized_least_squares(A, right, cutoff, batch, chosen)
        residuals = _residuals(A, right, solution, rank, chosen, batch)
        return (solution[..., 0] if vector else solution), residuals, rank, np.zeros(0, real_of(A.dtype))
    U, S, Vh = _thin_svd(A)
    largest = S.max(-1, keepdims=True) if S.shape[-1] else np.zeros((*S.shape[:-1], 1), S.dtype)
    kept = np.greater(S, cutoff * largest)
    inverted = np.where(kept, 1 / np.where(kept, S, 1), 0).astype(S.dtype)
    rank = np.sum(kept, axis=-1, dtype=np.int64)
    coefficients = inverted[..., None] * (U.swapaxes(-1, -2).conj() @ right)
    solution = Vh.swapaxes(-1, -2).conj() @ coefficients
    residuals = _residuals(A, right, solution, rank, chosen, batch)
    placed = _in_room_for_both(solution, A.shape[-2])
    return (
        placed[..., 0] if vector else placed,
        residuals,
        np.zeros(0, np.int64) if chosen == "gels" else rank,
        S if chosen in ("gelsd", "gelss") else np.zeros(0, S.dtype),
    )


def _factorized_least_squares(A: Array, B: Array, cutoff: float, batch: Shape, driver: str) -> tuple[Array, Array]:
    """By LAPACK's QR factorizations: the solutions, and the ranks of the matrices if columns are exchanged."""
    (rows, columns), sides, count = A.shape[-2:], B.shape[-1], math.prod(batch)
    matrices = np.array(np.broadcast_to(A, (*batch, rows, columns)).swapaxes(-1, -2), order="C")
    solution = np.zeros((count, sides, max(rows, columns)), A.dtype)
    solution[..., :rows] = np.broadcast_to(B, (*batch, rows, sides)).swapaxes(-1, -2).reshape(count, sides, rows)
    stack = matrices.reshape(count, columns, rows)
    if driver == "gelsy":
        ranks = lapack.least_squares(stack, solution, cutoff).reshape(batch)
    else:
        infos = lapack.full_rank_least_squares(stack, solution).reshape(batch)
        _raise_for_info("torch.linalg.lstsq", infos, _NOT_FULL_RANK)
        ranks = np.zeros(0, np.int64)
    found = solution.reshape(*batch, sides, -1)[..., :columns]
    return found.swapaxes(-1, -2), ranks


def _in_room_for_both(X: Array, rows: int) -> Array:
    """X by columns, with room for the right-hand sides that LAPACK overwrites."""
    columns = X.shape[-2]
    room = np.zeros((*X.shape[:-2], X.shape[-1], max(rows, columns)), X.dtype)[..., :columns].swapaxes(-1, -2)
    room[...] = X
    return room


def _thin_svd(A: Array) -> tuple[Array, Array, Array]:
    try:
        U, S, Vh = np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError as error:
        raise failed_factorization(f"torch.linalg.lstsq: {error}") from None
    return U, S, Vh


def _residuals(A: Array, B: Array, X: Array, rank: Array, driver: str, batch: Shape) -> Array:
    """Squared distances of overdetermined systems of full rank, which the driver "gelsy" does not give."""
    rows, columns = A.shape[-2:]
    if rows <= columns or driver == "gelsy" or (driver != "gels" and not np.all(rank == columns)):
        return np.zeros(0, real_of(A.dtype))
    distance = A @ X - B
    return np.sum((distance * distance.conj()).real, axis=-2)
