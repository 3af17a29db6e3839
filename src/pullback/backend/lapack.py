"""Routines of LAPACK that NumPy's library has and NumPy does not offer: one call for each matrix of a stack.

Note [LAPACK of NumPy]
NumPy is linked with a LAPACK, of which it uses a part. The rest is found through NumPy's own module (`numpy_library`), under
one of a few names and with sizes of 32 or 64 bits; a pair of names and sizes is believed once it factorized a known matrix.
Where there is none (Windows, a browser), or the arrays are not NumPy's, or many and small, `serves` is false and the
kernels eliminate by columns of all matrices at once.

A matrix is passed as LAPACK wants it, its columns one after the other: as a row-major array with rows and columns
exchanged. Routines overwrite what they are given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend.blas import numpy_library
from pullback.backend.c_types import ctypes
from pullback.typing import Array

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_CALLS_LIKE_A_COLUMN = 6  # so many take as long as the elimination of one column of all matrices
_NAMES = (
    ("scipy_{}_64_", "c_int64"),
    ("{}_64_", "c_int64"),
    ("{}$NEWLAPACK$ILP64", "c_int64"),
    ("{}$NEWLAPACK", "c_int32"),
    ("scipy_{}_", "c_int32"),
    ("{}_", "c_int32"),
)


def serves(array: Array, count: int, size: int) -> bool:
    """Whether the routines can be called for so many matrices of the array, and are faster than columns of all at once."""
    return 0 < count <= _CALLS_LIKE_A_COLUMN * size and finds_routines(array)


def finds_routines(array: Array) -> bool:
    """Whether the routines can be called for matrices of the array at all."""
    return bool(array.size and type(array) is np.ndarray and array.dtype.char in _LETTERS and _library())


@functools.cache
def _library() -> tuple[Any, str, Any] | None:
    """The library, how it names its routines, and its type of integers."""
    library = numpy_library()
    for name, kind in _NAMES if library is not None else ():
        integer = getattr(ctypes, kind)
        if hasattr(library, name.format("dgetrf")) and _is_right(library, name, integer):
            return library, name, integer
    return None


def _is_right(library: Any, name: str, integer: Any) -> bool:
    """Whether [[1 2] [4 4]] is factorized into [[4 4] [1/4 1]]."""
    columns = np.array([[[1.0, 4.0], [2.0, 4.0]]])
    pivots, info = np.full(2, -1, integer), integer(-1)
    two = ctypes.byref(integer(2))
    getattr(library, name.format("dgetrf"))(
        two, two, ctypes.c_void_p(columns.ctypes.data), two, ctypes.c_void_p(pivots.ctypes.data), ctypes.byref(info)
    )
    return info.value == 0 and columns.tolist() == [[[4.0, 0.25], [4.0, 1.0]]] and pivots.tolist() == [2, 2]


@functools.cache
def _routine(name: str, kind: str) -> tuple[Callable[..., Any], Any]:
    found = _library()
    assert found is not None, "callers ask whether LAPACK serves them"
    library, naming, integer = found
    routine = getattr(library, naming.format(_LETTERS[kind] + name))
    routine.restype = None
    return routine, integer


def _addresses(stack: Array) -> range:
    """Where each matrix of a row-major stack begins."""
    start, step = stack.ctypes.data, stack.nbytes // len(stack)
    return range(start, start + stack.nbytes, step)


def factorize(columns: Array) -> tuple[Array, Array]:
    """L and U in the place of each matrix: the pivots, counted from 1, and the first zero on the diagonal of U, or 0."""
    routine, integer = _routine("getrf", columns.dtype.char)
    count, width, height = columns.shape
    pivots, info = np.zeros((count, min(width, height)), integer), np.zeros(count, integer)
    m, n = ctypes.byref(integer(height)), ctypes.byref(integer(width))
    for matrix, pivot, failed in zip(_addresses(columns), _addresses(pivots), _addresses(info), strict=True):
        routine(m, n, ctypes.c_void_p(matrix), m, ctypes.c_void_p(pivot), ctypes.c_void_p(failed))
    return pivots.astype(np.int32), info.astype(np.int32)


def substitute(A: Array, B: Array, upper: bool, unitriangular: bool, *, by_columns: bool) -> None:
    """X of AX = B in the place of B, which is given by columns; A by rows or by columns, and its triangle is read."""
    routine, integer = _routine("trsm", B.dtype.char)
    _, sides, size = B.shape
    # Rows that lie together are the columns of the transpose, whose other triangle it is.
    letters = (
        b"L",
        b"U" if upper == by_columns else b"L",
        b"N" if by_columns else b"T",
        b"U" if unitriangular else b"N",
    )
    one = np.ones(1, B.dtype)
    n, width = ctypes.byref(integer(size)), ctypes.byref(integer(sides))
    for matrix, right in zip(_addresses(A), _addresses(B), strict=True):
        places = ctypes.c_void_p(one.ctypes.data), ctypes.c_void_p(matrix), n, ctypes.c_void_p(right), n
        routine(*letters, n, width, *places, *[ctypes.c_size_t(1)] * 4)


def factorize_indefinite(columns: Array, hermitian: bool) -> tuple[Array, Array]:
    """L and D of symmetric matrices in their place, of which the lower triangle is read: the pivots and infos."""
    name = "hetrf" if hermitian and columns.dtype.kind == "c" else "sytrf"
    routine, integer = _routine(name, columns.dtype.char)
    count, size, _ = columns.shape
    pivots, info = np.zeros((count, size), integer), np.zeros(count, integer)
    room = np.zeros(max(1, 64 * size), columns.dtype)
    n, length = ctypes.byref(integer(size)), ctypes.byref(integer(room.size))
    for matrix, pivot, failed in zip(_addresses(columns), _addresses(pivots), _addresses(info), strict=True):
        work = ctypes.c_void_p(room.ctypes.data), length, ctypes.c_void_p(failed), ctypes.c_size_t(1)
        routine(b"L", n, ctypes.c_void_p(matrix), n, ctypes.c_void_p(pivot), *work)
    return pivots.astype(np.int32), info.astype(np.int32)


def least_squares(A: Array, B: Array, rcond: float) -> Array:
    """X of least norm for which AX is nearest to B, by a QR factorization with exchanged columns; the ranks.

    Both are given by columns and overwritten; B has as many rows as the larger side of A, and X is in its first ones.
    """
    routine, integer = _routine("gelsy", A.dtype.char)
    count, width, _ = A.shape
    exchanged, ranks, info = np.zeros((count, width), integer), np.zeros(count, integer), integer(0)
    limit, more = np.full(1, rcond, A.real.dtype), np.zeros(2 * width, A.real.dtype)
    room, sizes = _system(A, B, integer)
    work = [ctypes.c_void_p(room.ctypes.data), ctypes.byref(integer(room.size))]
    work += [ctypes.c_void_p(more.ctypes.data)] if A.dtype.kind == "c" else []
    for matrix, right, order, rank in zip(
        _addresses(A), _addresses(B), _addresses(exchanged), _addresses(ranks), strict=True
    ):
        columns = ctypes.c_void_p(order), ctypes.c_void_p(limit.ctypes.data), ctypes.c_void_p(rank)
        routine(*sizes, *_placed(matrix, right, sizes, B, integer), *columns, *work, ctypes.byref(info))
    return ranks.astype(np.int64)


def full_rank_least_squares(A: Array, B: Array) -> Array:
    """The same for matrices of full rank; for each the position of the first zero on the diagonal of R, or 0."""
    routine, integer = _routine("gels", A.dtype.char)
    infos = np.zeros(len(A), integer)
    room, sizes = _system(A, B, integer)
    work = ctypes.c_void_p(room.ctypes.data), ctypes.byref(integer(room.size))
    for matrix, right, info in zip(_addresses(A), _addresses(B), _addresses(infos), strict=True):
        placed = _placed(matrix, right, sizes, B, integer)
        routine(b"N", *sizes, *placed, *work, ctypes.c_void_p(info), ctypes.c_size_t(1))
    return infos.astype(np.int32)


def _system(A: Array, B: Array, integer: Any) -> tuple[Array, tuple[Any, Any, Any]]:
    """Room to work in, and the sizes of A and B as they are passed."""
    _, width, height = A.shape
    sides, few = B.shape[1], min(width, height)
    room = np.zeros(64 * max(few + 3 * width + 1, 2 * few + sides), A.dtype)
    return room, (ctypes.byref(integer(height)), ctypes.byref(integer(width)), ctypes.byref(integer(sides)))


def _placed(matrix: int, right: int, sizes: tuple[Any, Any, Any], B: Array, integer: Any) -> tuple[Any, ...]:
    return ctypes.c_void_p(matrix), sizes[0], ctypes.c_void_p(right), ctypes.byref(integer(B.shape[2]))
