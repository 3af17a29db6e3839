"""LU factorization with partial pivoting: by LAPACK, or by blocks of columns for all matrices of a batch at once."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend import lapack
from pullback.backend.array_module import is_at_hand
from pullback.backend.unpromised_bits import note_factorization
from pullback.checks import checked
from pullback.kernels.matrix_checks import _broadcast_batches, _by_columns, _raise_for_info
from pullback.kernels.rearranging import tril, triu
from pullback.kernels.triangular import _solve_left
from pullback.native import by_device, native
from pullback.typing import Array

_BLOCK = 32


@native
def _factorize(A: Array) -> tuple[Array, Array, Array]:
    """The factors in one matrix, the pivots counted from 1, and the first zero on the diagonal (0 if there is none)."""
    batch, (rows, columns) = A.shape[:-2], A.shape[-2:]
    count, length = math.prod(batch), min(rows, columns)
    note_factorization(A)
    if lapack.serves(A, count, length):
        by_columns = np.array(A.swapaxes(-1, -2), order="C")
        pivots, info = lapack.factorize(by_columns.reshape(count, columns, rows))
        return by_columns.swapaxes(-1, -2), pivots.reshape(*batch, length), info.reshape(batch)
    LU, pivots, info = _eliminate(np.array(A, order="C").reshape(count, rows, columns))
    return LU.reshape(A.shape), pivots.reshape(*batch, length), info.reshape(batch)


def _eliminate(LU: Array) -> tuple[Array, Array, Array]:
    """The factorization of a stack of matrices in its place."""
    count, rows, columns = LU.shape
    length = min(rows, columns)
    pivots = np.zeros((count, length), np.int32)
    info = np.zeros(count, np.int32)
    each = np.arange(count)
    for start in range(0, length, _BLOCK):
        stop = min(start + _BLOCK, length)
        for column in range(start, stop):
            candidates = LU[:, column:, column]
            sizes = np.abs(candidates.real) + np.abs(candidates.imag) if LU.dtype.kind == "c" else np.abs(candidates)
            pivot = column + _largest(sizes)
            pivots[:, column] = pivot + 1
            former = LU[:, column, :].copy()
            LU[:, column, :] = LU[each, pivot, :]
            LU[each, pivot, :] = former
            diagonal = LU[:, column, column]
            info = np.where((info == 0) & (diagonal == 0), column + 1, info)
            LU[:, column + 1 :, column] /= np.where(diagonal == 0, 1, diagonal)[:, None]
            LU[:, column + 1 :, column + 1 : stop] -= (
                LU[:, column + 1 :, column, None] * LU[:, column, None, column + 1 : stop]
            )
        if stop < columns:
            corner, right = LU[:, start:stop, start:stop], LU[:, start:stop, stop:]
            LU[:, start:stop, stop:] = _solve_left(corner, right, upper=False, unitriangular=True)
            LU[:, stop:, stop:] -= LU[:, stop:, start:stop] @ LU[:, start:stop, stop:]
    return LU, pivots, info.astype(np.int32)


def _largest(sizes: Array) -> Array:
    """Where each row is largest. A NaN is not, unless it comes first."""
    places = np.argmax(sizes, axis=1)
    missing = np.isnan(sizes)
    if not is_at_hand(missing) or missing.any():
        places = np.where(missing[:, 0], 0, np.argmax(np.where(missing, -1, sizes), axis=1))
    return places


def _permutation(pivots: Array, rows: int) -> Array:
    """For each row of PA the row of A that stands there, from the exchanges that pivots list."""
    batch, length = pivots.shape[:-1], pivots.shape[-1]
    flat = pivots.reshape(math.prod(batch), length).astype(np.int64) - 1
    order = np.tile(np.arange(rows), (flat.shape[0], 1))
    each = np.arange(flat.shape[0])
    for row in range(length):
        former = order[:, row].copy()
        order[:, row] = order[each, flat[:, row]]
        order[each, flat[:, row]] = former
    return order.reshape(*batch, rows)


@by_device
@checked
def linalg_lu_factor_ex(A: Array, *, pivot: bool = True, check_errors: bool = False) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the pivots, and where the diagonal of U has its first zero."""
    LU, pivots, info = _factorize(A)
    if check_errors:
        _raise_for_info("torch.linalg.lu_factor_ex", info, "U[{info},{info}] is zero and using it on lu_solve would "
                        "result in a division by zero.")  # fmt: skip
    return _by_columns(LU), pivots, info


@by_device
@checked
def linalg_lu(A: Array, *, pivot: bool = True) -> tuple[Array, Array, Array]:
    """P, L and U of A = PLU."""
    LU, pivots, _ = _factorize(A)
    return lu_unpack(LU, pivots)


@by_device
@checked
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    """P, L and U from what lu_factor returns."""
    empty = np.zeros(0, LU_data.dtype)
    P = _permutation_matrix(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty
    if not unpack_data:
        return P, empty, empty.copy()
    length = min(LU_data.shape[-2:])
    L = tril(LU_data[..., :, :length], -1)
    diagonal = np.arange(length)
    L[..., diagonal, diagonal] = 1
    return P, L, triu(LU_data[..., :length, :])


def _permutation_matrix(pivots: Array, rows: int, dtype: np.dtype[np.generic]) -> Array:
    order = _permutation(pivots, rows)
    return np.ascontiguousarray((order[..., None] == np.arange(rows)).swapaxes(-1, -2)).astype(dtype)


@by_device
def permute_rows(input: Array, pivots: Array, inverse: bool) -> Array:
    """The rows exchanged as pivots say: the transpose of P times `input`; P itself if `inverse`."""
    rows = input.shape[-2]
    order = _permutation(pivots, rows)
    if inverse:
        order = np.argsort(order, axis=-1)
    batch = np.broadcast_shapes(order.shape[:-1], input.shape[:-2])
    wide = np.broadcast_to(input, (*batch, *input.shape[-2:]))
    return np.take_along_axis(wide, np.broadcast_to(order, (*batch, rows))[..., None], axis=-2)


@by_device
def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> Array:
    """X of AX = B (or XA = B, or with A's adjoint) from the LU factorization of A.

    `LU` and `pivots` are what `lu_factor` gave; `B` is (..., n, k), or (..., k, n) if not `left`.

    >>> import pullback
    >>> LU, pivots = pullback.linalg.lu_factor(2 * pullback.eye(2))
    >>> pullback.linalg.lu_solve(LU, pivots, pullback.ones(2, 1))
    tensor([[0.5000],
            [0.5000]])
    """
    _broadcast_batches(LU, B)
    if not left:
        # XA = B is the adjoint of A^H X^H = B^H.
        flipped = linalg_lu_solve(LU, pivots, B.swapaxes(-1, -2).conj(), left=True, adjoint=not adjoint)
        return _by_columns(flipped.swapaxes(-1, -2).conj())
    if not adjoint:
        lower = _solve_left(LU, permute_rows(B, pivots, False), upper=False, unitriangular=True)
        return _by_columns(_solve_left(LU, lower, upper=True, unitriangular=False))
    flipped = LU.swapaxes(-1, -2).conj()
    upper = _solve_left(flipped, B, upper=False, unitriangular=False)
    return _by_columns(permute_rows(_solve_left(flipped, upper, upper=True, unitriangular=True), pivots, True))
