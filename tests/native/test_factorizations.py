"""The compiled factorizations and solvers against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import decompositions, lu, matrix_functions, solvers, triangular
from tests.native.rows import assert_as_reference, declines, dtypes, needs_extension, normal, with_threads

pytestmark = needs_extension

SHAPES = pytest.mark.parametrize("shape", [(1, 1), (3, 3), (17, 17), (5, 4, 4), (2, 3, 9, 9), (40, 33, 33), (130, 130)])
factorize: Any = lu._factorize
solve: Any = solvers._solve
invert: Any = matrix_functions._invert
cholesky: Any = decompositions._cholesky
determinant: Any = matrix_functions.linalg_det


def regular(shape: tuple[int, ...], dtype: Any) -> Any:
    """Matrices far from singular, with rows that have to be exchanged."""
    matrices = normal(shape, dtype)
    index = np.arange(shape[-1])
    matrices[..., index, index[::-1]] += dtype(2 * shape[-1])
    return matrices


def positive(shape: tuple[int, ...], dtype: Any) -> Any:
    """Symmetric matrices with positive eigenvalues."""
    matrices = normal(shape, dtype)
    return (matrices @ matrices.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)).astype(dtype)


def stored(matrices: Any, by_columns: bool) -> Any:
    return np.ascontiguousarray(matrices.swapaxes(-1, -2)).swapaxes(-1, -2) if by_columns else matrices


def assert_by_columns(matrices: Any) -> None:
    """Columns lie together, as the reference leaves them too."""
    assert matrices.swapaxes(-1, -2).flags.c_contiguous


@dtypes
@SHAPES
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize("by_columns", [False, True])
def test_triangular_systems(shape: Any, upper: bool, unitriangular: bool, by_columns: bool, dtype: Any) -> None:
    A = normal(shape, dtype) / dtype(shape[-1])
    index = np.arange(shape[-1])
    A[..., index, index] = dtype(1.5)
    A = stored(A, by_columns)
    for width in (1, 70, 3):
        arguments = A, normal((*shape[:-1], width), dtype, 1)
        keywords = {"upper": upper, "unitriangular": unitriangular}
        assert_as_reference(triangular.linalg_solve_triangular, *arguments, **keywords, tolerance=400)
        assert_by_columns(triangular.linalg_solve_triangular(*arguments, **keywords))


@dtypes
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("by_columns", [False, True])
def test_large_triangular_systems_with_few_sides(upper: bool, by_columns: bool, dtype: Any) -> None:
    A = stored(normal((300, 300), dtype) / dtype(300) + np.eye(300, dtype=dtype), by_columns)
    arguments = A, normal((300, 3), dtype, 1)
    assert_as_reference(triangular.linalg_solve_triangular, *arguments, upper=upper, tolerance=1000)


def test_a_zero_on_the_diagonal_gives_infinities() -> None:
    A = np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert_as_reference(triangular.linalg_solve_triangular, A, np.ones((3, 1)), upper=False)


@dtypes
@SHAPES
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("by_columns", [False, True])
def test_cholesky(shape: Any, upper: bool, by_columns: bool, dtype: Any) -> None:
    A = stored(positive(shape, dtype), by_columns)
    factor, _ = assert_as_reference(cholesky, A, upper, tolerance=200)
    assert_by_columns(factor)
    for width in (3, 20):
        B = normal((*shape[:-1], width), dtype, 1)
        assert_as_reference(solvers.cholesky_solve, B, factor, upper, tolerance=400)


def test_cholesky_of_what_is_not_positive_is_the_references() -> None:
    A = positive((3, 4, 4), np.float64)
    A[1, 2, 2] = -1
    assert declines(cholesky, A, False)
    assert declines(cholesky, np.full((2, 2), np.nan), False)


@dtypes
@SHAPES
@pytest.mark.parametrize("by_columns", [False, True])
def test_factors_and_determinants(shape: Any, by_columns: bool, dtype: Any) -> None:
    A = stored(regular(shape, dtype), by_columns)
    assert_as_reference(factorize, A, tolerance=200)
    assert_as_reference(determinant, A / dtype(2 * shape[-1]), tolerance=2000)


@dtypes
@pytest.mark.parametrize("shape", [(3, 5), (7, 2), (4, 6, 9)])
def test_factors_of_oblong_matrices(shape: Any, dtype: Any) -> None:
    assert_as_reference(factorize, normal(shape, dtype), tolerance=200)


def test_singular_matrices() -> None:
    A = np.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert_as_reference(factorize, A)
    assert_as_reference(determinant, A)
    assert declines(solve, A, np.ones((2, 2, 1)), True)
    assert declines(invert, A)


@pytest.mark.parametrize(
    ("column", "pivot"), [([1.0, np.nan, -2.0], 3), ([np.nan, 1.0, 2.0], 1), ([0.0, np.nan, 0.0], 1)]
)
def test_nan_is_no_pivot_unless_it_comes_first(column: list[float], pivot: int) -> None:
    A = np.array([column, [3.0, 4.0, 5.0], [6.0, 7.0, 9.0]]).T.copy()
    assert factorize(A)[1][0] == pivot
    assert lu._eliminate(A[None].copy())[1][0, 0] == pivot


@dtypes
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (17, 17), (5, 4, 4), (2, 3, 9, 9), (40, 33, 33)])
@pytest.mark.parametrize("by_columns", [False, True])
def test_solving_and_inverting(shape: Any, by_columns: bool, dtype: Any) -> None:
    A = stored(regular(shape, dtype), by_columns)
    for width in (1, 3, 41):
        assert_as_reference(solve, A, normal((*shape[:-1], width), dtype, 1), True, tolerance=400)
    assert_as_reference(invert, A, tolerance=400)
    assert_by_columns(invert(A)[0])
    assert_by_columns(solve(A, normal((*shape[:-1], 3), dtype, 1), True)[0])


def test_threads_change_nothing() -> None:
    A = positive((300, 12, 12), np.float32)
    for kernel, arguments in ((cholesky, (A, False)), (factorize, (A,)), (invert, (A,)), (determinant, (A,))):
        expected = kernel(*arguments)
        for count in (2, 8):
            for left, right in zip(with_threads(count, kernel, *arguments), expected, strict=True):
                np.testing.assert_array_equal(left, right)


def test_what_the_reference_serves() -> None:
    A = regular((3, 3), np.float32)
    assert not declines(determinant, A)
    assert declines(determinant, A.astype(np.complex64))
    assert declines(determinant, np.zeros((0, 0), np.float32))
    assert declines(solve, A, normal((2, 3, 1), np.float32), True)
    assert declines(solve, A, normal((3, 1), np.float32), False)
