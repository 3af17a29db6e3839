"""The LDL factorization of symmetric and Hermitian matrices, by NumPy's LAPACK or SciPy's, and systems solved with it."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend import lapack
from pullback.backend.optional_packages import import_scipy
from pullback.backend.unpromised_bits import note_factorization
from pullback.checks import checked
from pullback.kernels.matrix_checks import _by_columns, _raise_for_info
from pullback.kernels.triangular import _solve_left
from pullback.native import by_device
from pullback.typing import Array


@by_device
@checked
def linalg_ldl_factor_ex(
    A: Array, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    """The factors in one matrix, the pivots as LAPACK gives them, and the position of a zero in D."""
    size, count = A.shape[-1], math.prod(A.shape[:-2])
    factors, pivots, infos = _factorize_each(A.reshape(count, size, size), hermitian)
    info = infos.reshape(A.shape[:-2])
    if check_errors:
        _raise_for_info("torch.linalg.ldl_factor_ex", info, "The diagonal element {info} of D is zero.")
    return _by_columns(np.tril(factors).reshape(A.shape)), pivots.reshape(A.shape[:-1]), info


def _factorize_each(matrices: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """L and D in one matrix for each of a stack, the pivots and the infos."""
    note_factorization(matrices)
    if lapack.finds_routines(matrices):
        by_columns = np.array(matrices.swapaxes(-1, -2), order="C")
        return (by_columns.swapaxes(-1, -2), *lapack.factorize_indefinite(by_columns, hermitian))
    factors = np.array(matrices)
    pivots, infos = np.zeros(matrices.shape[:2], np.int32), np.zeros(len(matrices), np.int32)
    if matrices.size:
        name = "hetrf" if hermitian and matrices.dtype.kind == "c" else "sytrf"
        (factorize,) = import_scipy("linalg.lapack", "torch.linalg.ldl_factor").get_lapack_funcs((name,), (matrices,))
        for position, matrix in enumerate(matrices):
            factors[position], pivots[position], infos[position] = factorize(matrix, lower=1)
    return factors, pivots, infos


@by_device
@checked
def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """X of AX = B from the LDL factorization of A."""
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    size, count = LD.shape[-1], math.prod(batch)
    factors = np.broadcast_to(LD, (*batch, size, size)).reshape(count, size, size)
    steps = np.broadcast_to(pivots, (*batch, size)).reshape(count, size)
    right = np.broadcast_to(B, (*batch, *B.shape[-2:])).reshape(count, *B.shape[-2:])
    return _by_columns(_solve_each(factors, steps, right, hermitian).reshape(*batch, *B.shape[-2:]))


def _solve_each(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """A stack of systems: exchanges and multipliers are interleaved, so each L is first unfolded to P^T L."""
    L, order, double = _unfold(LD, pivots)
    D = np.zeros_like(LD)
    index = np.arange(LD.shape[-1])
    D[:, index, index] = LD[:, index, index].real if hermitian else LD[:, index, index]
    matrix, column = np.nonzero(double)
    beside = LD[matrix, column + 1, column]
    D[matrix, column + 1, column], D[matrix, column, column + 1] = beside, beside.conj() if hermitian else beside
    flipped = L.swapaxes(-1, -2).conj() if hermitian else L.swapaxes(-1, -2)
    permuted = np.take_along_axis(B, order[..., None], 1)
    inner = np.linalg.solve(D, _solve_left(L, permuted, upper=False, unitriangular=True))
    result = np.empty_like(B)
    np.put_along_axis(result, order[..., None], _solve_left(flipped, inner, upper=True, unitriangular=True), 1)
    return result


def _unfold(LD: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """The unit lower triangular factors, the order of the rows, and in which columns blocks of two begin."""
    count, size = pivots.shape
    L: Array = np.tile(np.eye(size, dtype=LD.dtype), (count, 1, 1))
    order = np.tile(np.arange(size), (count, 1))
    double = np.zeros((count, size), np.bool_)
    each = np.arange(count)
    inside = np.zeros(count, np.bool_)  # whether the column is the second one of a block
    for column in range(size):
        double[:, column] = ~inside & (pivots[:, column] < 0)
        at = column + double[:, column]
        exchanged = np.where(inside, at, np.abs(pivots[:, column]) - 1)
        upper, lower = L[each, at, :column], L[each, exchanged, :column]
        # The first column of a block is not exchanged when its second one's turn comes.
        L[each, at, :column], L[each, exchanged, :column] = lower, upper
        order[each, at], order[each, exchanged] = order[each, exchanged], order[each, at]
        L[:, column + 1 :, column] = LD[:, column + 1 :, column]
        L[double[:, column], column + 1 : column + 2, column] = 0
        inside = double[:, column]
    return L, order, double
