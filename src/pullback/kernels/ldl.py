"""The LDL factorization of symmetric and Hermitian matrices, by SciPy's LAPACK, and systems solved with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.kernels.matrix_checks import (
    _by_columns,
    _raise_for_info,
    _refuse_half,
    _require_floating,
    _require_square,
)
from pullback.kernels.triangular import _solve_left
from pullback.typing import Array


def _lapack() -> Any:
    try:
        from scipy.linalg import lapack
    except ImportError as error:
        raise ImportError("torch.linalg.ldl_factor needs the package scipy: install pullback[scipy]") from error
    return lapack


def linalg_ldl_factor_ex(
    A: Array, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    """The factors in one matrix, the pivots as LAPACK gives them, and the position of a zero in D."""
    _require_square("torch.linalg.ldl_factor_ex", A)
    _require_floating("torch.linalg.ldl_factor_ex", A)
    _refuse_half(A, "ldl_factor_kernel_cpu")
    size = A.shape[-1]
    matrices = A.reshape(math.prod(A.shape[:-2]), size, size)
    factors = np.array(matrices)
    pivots = np.zeros(matrices.shape[:2], np.int32)
    infos: Array = np.zeros(len(matrices), np.int32)
    if size:
        name = "hetrf" if hermitian and A.dtype.kind == "c" else "sytrf"
        (factorize,) = _lapack().get_lapack_funcs((name,), (matrices,))
        for position, matrix in enumerate(matrices):
            factors[position], pivots[position], infos[position] = factorize(matrix, lower=1)
    info = infos.reshape(A.shape[:-2])
    if check_errors:
        _raise_for_info("torch.linalg.ldl_factor_ex", info, "The diagonal element {info} of D is zero.")
    return _by_columns(np.tril(factors).reshape(A.shape)), pivots.reshape(A.shape[:-1]), info


def linalg_ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """X of AX = B from the LDL factorization of A."""
    _require_square("torch.linalg.ldl_solve", LD, "LD")
    if B.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead"
        )
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but "
            f"each b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    size, count = LD.shape[-1], math.prod(batch)
    factors = np.broadcast_to(LD, (*batch, size, size)).reshape(count, size, size)
    steps = np.broadcast_to(pivots, (*batch, size)).reshape(count, size)
    right = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])).reshape(count, *B.shape[-2:]))
    for position in range(len(right)):
        right[position] = _solve_one(factors[position], steps[position], right[position], hermitian)
    return _by_columns(right.reshape(*batch, *B.shape[-2:]))


def _solve_one(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """One system: exchanges and multipliers are interleaved, so L is first unfolded to P^T L."""
    size = LD.shape[-1]
    L, D, order = np.eye(size, dtype=LD.dtype), np.zeros_like(LD), np.arange(size)
    column = 0
    while column < size:
        width = 1 if pivots[column] > 0 else 2
        at, exchanged = column + width - 1, abs(int(pivots[column])) - 1
        if exchanged != at:
            L[[at, exchanged], :column] = L[[exchanged, at], :column]
            order[[at, exchanged]] = order[[exchanged, at]]
        L[column + width :, column : column + width] = LD[column + width :, column : column + width]
        D[column, column] = LD[column, column].real if hermitian else LD[column, column]
        if width == 2:
            D[at, at] = LD[at, at].real if hermitian else LD[at, at]
            D[at, column] = LD[at, column]
            D[column, at] = LD[at, column].conj() if hermitian else LD[at, column]
        column += width
    flipped = L.T.conj() if hermitian else L.T
    inner = np.linalg.solve(D, _solve_left(L, B[order], upper=False, unitriangular=True))
    result = np.empty_like(B)
    result[order] = _solve_left(flipped, inner, upper=True, unitriangular=True)
    return result
