"""LAPACK's routines against elimination by columns, which serves where there are none."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pullback
from pullback.backend import lapack
from pullback.kernels import ldl, lu, solvers, triangular
from pullback.typing import Array

DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture
def found() -> None:
    if lapack._library() is None:
        pytest.skip("NumPy's library names no LAPACK that is known")


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "_library", lambda: None)


def matrices(dtype: str, *shape: int) -> Array:
    source = np.random.default_rng(sum(shape))
    values = source.normal(size=shape) + (1j * source.normal(size=shape) if dtype.startswith("c") else 0)
    return values.astype(dtype)


def close(first: Array, second: Array) -> None:
    tolerance = 1e-3 if first.real.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(first, second, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (2, 3, 40, 40), (300, 300)])
def test_factors_and_pivots_are_those_of_elimination(
    found: None, monkeypatch: pytest.MonkeyPatch, dtype: str, shape: tuple[int, ...]
) -> None:
    A = matrices(dtype, *shape)
    factorize = getattr(lu._factorize, "__wrapped__", lu._factorize)
    called = factorize(A)
    without(monkeypatch)
    for first, second in zip(called, factorize(A), strict=True):
        assert first.shape == second.shape
        assert first.dtype == second.dtype
        close(first, second)


def test_the_position_of_a_zero_pivot(found: None) -> None:
    A = np.zeros((2, 2, 2, 2))
    A[..., 0, 0] = 1
    A[1, :, 1, 1] = 1
    assert lu._factorize(A)[2].tolist() == [[2, 2], [0, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("by_columns", [False, True])
def test_triangular_systems(
    found: None, monkeypatch: pytest.MonkeyPatch, dtype: str, upper: bool, unit: bool, by_columns: bool
) -> None:
    A = matrices(dtype, 2, 1, 30, 30) / 30 + np.eye(30, dtype=dtype)
    A = A.swapaxes(-1, -2) if by_columns else A
    B = matrices(dtype, 3, 30, 4)
    before = A.copy(), B.copy()
    called = triangular._solve_left(A, B, upper=upper, unitriangular=unit)
    without(monkeypatch)
    close(called, triangular._solve_left(A, B, upper=upper, unitriangular=unit))
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", ["gels", "gelsy"])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (2, 4, 4)])
def test_least_squares(
    found: None, monkeypatch: pytest.MonkeyPatch, dtype: str, driver: str, shape: tuple[int, ...]
) -> None:
    A, B = matrices(dtype, *shape), matrices(dtype, *shape[:-1], 2)
    called = solvers.linalg_lstsq(A, B, driver=driver)
    without(monkeypatch)
    for first, second in zip(called, solvers.linalg_lstsq(A, B, driver=driver), strict=True):
        assert first.shape == second.shape
        assert first.dtype == second.dtype
        assert first.strides == second.strides
        close(first, second)


def test_columns_that_depend_on_others(found: None) -> None:
    A = pullback.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    solution, _, rank, _ = pullback.linalg.lstsq(A, pullback.tensor([[2.0], [4.0], [6.0]]))
    assert rank.item() == 1
    pullback.testing.assert_close(solution, pullback.tensor([[1.0], [1.0]]))
    singular = pullback.tensor([[1.0, 0.0], [2.0, 0.0]])
    with pytest.raises(RuntimeError, match=r"lstsq: The least squares .* does not have full rank \(error code: 2\)"):
        pullback.linalg.lstsq(singular, pullback.ones(2, 1), driver="gels")
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): The least squares solution could not be computed"):
        pullback.linalg.lstsq(pullback.stack([pullback.eye(2), singular]), pullback.ones(2, 2, 1), driver="gels")


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(RuntimeError, match="non-finite"):
        pullback.linalg.lstsq(pullback.full((3, 2), float("nan")), pullback.ones(3, 1))


def test_the_extra_is_named_where_neither_library_has_the_routine(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch)
    monkeypatch.setitem(sys.modules, "scipy.linalg.lapack", None)
    with pytest.raises(ImportError, match=r"pullback\[scipy\]"):
        ldl.linalg_ldl_factor_ex(np.eye(2))


def test_scipy_and_numpy_factorize_alike(found: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    A = matrices("complex128", 3, 6, 6)
    A = A + A.conj().swapaxes(-1, -2)
    called = ldl.linalg_ldl_factor_ex(A, hermitian=True)
    without(monkeypatch)
    for first, second in zip(called, ldl.linalg_ldl_factor_ex(A, hermitian=True), strict=True):
        assert first.dtype == second.dtype
        close(first, second)
