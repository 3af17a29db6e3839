"""Cholesky, QR, singular values and eigenvalues of (batches of) matrices."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.dtype import complex_of, real_of
from pullback.backend.logical_array import has_values
from pullback.backend.unpromised_bits import note_factorization
from pullback.checks import checked
from pullback.checks.elements import failed_factorization, value_out_of_range
from pullback.checks.matrices import refuse_half
from pullback.kernels.matrix_checks import _as_info, _by_columns, _raise_for_info
from pullback.native import by_device, native
from pullback.typing import Array

_NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{info} is not positive-definite)."
)


@by_device
@checked
def linalg_cholesky_ex(A: Array, *, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    """L of A = L L^H (or its adjoint), and the order of the first minor that is not positive, 0 if all are."""
    L, info = _cholesky(A, upper)
    if check_errors:
        _raise_for_info("linalg.cholesky_ex", info, _NOT_POSITIVE)
    return L, info


@by_device
@checked
def cholesky(input: Array, upper: bool = False) -> Array:
    """As linalg.cholesky, under the older name."""
    if not input.size:
        return input.copy()
    L, info = _cholesky(input, upper)
    _raise_for_info("cholesky", info, _NOT_POSITIVE)
    return L


@by_device
def check_cholesky(info: Array) -> None:
    """Raise if a factorization by linalg.cholesky failed."""
    _raise_for_info("linalg.cholesky", info, _NOT_POSITIVE)


@native
def _cholesky(A: Array, upper: bool) -> tuple[Array, Array]:
    refuse_half(A, "cholesky_cpu")
    note_factorization(A)
    # NumPy reads the lower triangle; the upper factor belongs to the upper triangle.
    lower = A.swapaxes(-1, -2).conj() if upper else A
    try:
        L, info = np.linalg.cholesky(lower), np.zeros(A.shape[:-2], np.int32)
        if A.size and np.isnan(np.diagonal(L, axis1=-2, axis2=-1)).any():
            L, info = _cholesky_by_columns(lower)
    except np.linalg.LinAlgError:
        L, info = _cholesky_by_columns(lower)
    return (L.conj().swapaxes(-1, -2) if upper else _by_columns(L)), info


def _cholesky_by_columns(A: Array) -> tuple[Array, Array]:
    """The factorization up to the first minor that is not positive, whose order is the second result."""
    size = A.shape[-1]
    L = np.tril(A).reshape(math.prod(A.shape[:-2]), size, size)
    info = np.zeros(L.shape[0], np.int32)
    for column in range(size):
        row = L[:, column, :column]
        square = L[:, column, column].real - np.sum((row * row.conj()).real, axis=-1)
        info = np.where((info == 0) & ~(square > 0), column + 1, info)
        going = info == 0
        diagonal = np.sqrt(np.where(going, square, 1))
        below = L[:, column + 1 :, column] - (L[:, column + 1 :, :column] @ row.conj()[:, :, None])[..., 0]
        L[going, column, column] = diagonal[going]
        L[going, column + 1 :, column] = (below / diagonal[:, None])[going]
    return L.reshape(A.shape), _as_info(info, A.shape[:-2])


@by_device
@checked
def linalg_qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """Q with orthonormal columns and R upper triangular of A = QR; Q is empty in mode "r"."""
    if A.size == 0:
        return _empty_qr(A, mode)
    note_factorization(A)
    if mode == "r":
        return np.zeros(0, A.dtype), _by_columns(np.linalg.qr(A, "r"))
    Q, R = np.linalg.qr(A, "reduced" if mode == "reduced" else "complete")
    return _by_columns(Q), _by_columns(R)


def _empty_qr(A: Array, mode: str) -> tuple[Array, Array]:
    batch, (rows, columns) = A.shape[:-2], A.shape[-2:]
    width = min(rows, columns) if mode != "complete" else rows
    R = np.zeros((*batch, width, columns), A.dtype)
    if mode == "r":
        return np.zeros(0, A.dtype), R
    Q = np.zeros((*batch, rows, width), A.dtype)
    index = np.arange(min(rows, width))
    Q[..., index, index] = 1
    return Q, R


@by_device
@checked
def geqrf(input: Array) -> tuple[Array, Array]:
    """The QR decomposition as reflectors: R above the diagonal, the reflectors below it, and their factors."""
    if input.size == 0:
        return input.copy(), np.zeros((*input.shape[:-2], min(input.shape[-2:])), input.dtype)
    note_factorization(input)
    reflectors, tau = np.linalg.qr(input, "raw")
    return _by_columns(reflectors.swapaxes(-1, -2)), tau


@by_device
@checked
def linalg_svd(A: Array, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Array, Array, Array]:
    """U, S and Vh of A = U diag(S) Vh, the singular values in descending order."""
    note_factorization(A)
    try:
        U, S, Vh = np.linalg.svd(A, full_matrices)
    except np.linalg.LinAlgError:
        raise failed_factorization(_svd_problem(A)) from None
    return _by_columns(U), S, _by_columns(Vh)


@by_device
@checked
def singular_values(A: Array) -> Array:
    """The singular values alone, in descending order."""
    note_factorization(A)
    try:
        return np.linalg.svd(A, compute_uv=False)
    except np.linalg.LinAlgError:
        raise failed_factorization(_svd_problem(A)) from None


def _svd_problem(A: Array) -> str:
    """What to say of matrices whose singular values were not found."""
    finite = np.isfinite(A).all(axis=(-1, -2))
    if np.all(finite):
        return (
            "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated singular values."
        )
    batch = "" if A.ndim == 2 else f"(Batch element {int(np.argmin(finite.reshape(-1)))}): "
    return f"linalg.svd: {batch}The algorithm failed to converge because the input matrix contained non-finite values."


@by_device
@checked
def linalg_eigh(A: Array, UPLO: str = "L") -> tuple[Array, Array]:
    """The eigenvalues, ascending, and the eigenvectors of Hermitian matrices, of which one triangle is read."""
    note_factorization(A)
    try:
        L, V = np.linalg.eigh(A, "L" if UPLO in "Ll" else "U")
    except np.linalg.LinAlgError:
        return np.full(A.shape[:-1], np.nan, real_of(A.dtype)), np.full(A.shape, np.nan, A.dtype)
    return L, _by_columns(V)


@by_device
@checked
def hermitian_eigenvalues(A: Array, UPLO: str = "L") -> Array:
    """The eigenvalues of Hermitian matrices alone, ascending."""
    note_factorization(A)
    try:
        return np.linalg.eigvalsh(A, "L" if UPLO in "Ll" else "U")
    except np.linalg.LinAlgError:
        return np.full(A.shape[:-1], np.nan, real_of(A.dtype))


@by_device
@checked
def linalg_eig(A: Array) -> tuple[Array, Array]:
    """The eigenvalues and the eigenvectors of square matrices, always complex."""
    if not np.isfinite(A).all():
        raise value_out_of_range("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    note_factorization(A)
    L, V = np.linalg.eig(A)
    wide = complex_of(A.dtype)
    return L.astype(wide, copy=False), _by_columns(V.astype(wide, copy=False))


@by_device
@checked
def eigenvalues(A: Array) -> Array:
    """The eigenvalues of square matrices alone, always complex."""
    wide = complex_of(A.dtype)
    if not np.isfinite(A).all():
        return np.full(A.shape[:-1], np.nan, wide)
    note_factorization(A)
    return np.linalg.eigvals(A).astype(wide, copy=False)


def depends_on_phase(diagonal: Array) -> bool:
    """Whether the diagonal of V^H grad_V says that a loss depends on the phases of the vectors, which are arbitrary."""
    if diagonal.dtype.kind != "c" or not has_values(diagonal):
        return False
    return not np.allclose(diagonal.imag, 0, rtol=1e-2, atol=1e-2)


@by_device
def identity_like(input: Array) -> Array:
    """The identity (of a wide or tall matrix: ones on the diagonal) in the shape and dtype of `input`."""
    identity: Array = np.eye(*input.shape[-2:], dtype=input.dtype)
    return np.broadcast_to(identity, input.shape).copy()
