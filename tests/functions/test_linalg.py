from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.backend import lapack

L: Any = pullback.linalg
RNG = np.random.default_rng(3)


def _matrices(*shape: int, complex: bool = False) -> Any:
    values = RNG.normal(size=shape)
    return pullback.from_numpy(values + 1j * RNG.normal(size=shape) if complex else values)


def _close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (1, 40, 40), (70, 33), (0, 0), (2, 0, 3)])
def test_lu_multiplies_to_the_matrix(shape: tuple[int, ...], complex: bool) -> None:
    A = _matrices(*shape, complex=complex)
    P, lower, upper = L.lu(A)
    _close(P @ lower @ upper, A)
    assert np.all(np.abs(lower.numpy()) <= 1.5)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_triangular_systems_are_solved(upper: bool, left: bool, complex: bool) -> None:
    A, B = _matrices(2, 4, 4, complex=complex) + 3 * pullback.eye(4), _matrices(4, 4, complex=complex)
    X = L.solve_triangular(A, B, upper=upper, left=left)
    triangle = A.triu() if upper else A.tril()
    _close(triangle @ X if left else X @ triangle, B.expand(2, 4, 4))


def test_large_triangular_systems_are_solved_by_halves() -> None:
    A, B = _matrices(150, 150) + 30 * pullback.eye(150), _matrices(150, 2)
    _close(A.tril() @ L.solve_triangular(A, B, upper=False), B)
    assert L.solve_triangular(A, B[:, :0], upper=True).shape == (150, 0)


def test_a_zero_on_the_diagonal_of_a_triangle_gives_infinities() -> None:
    X = L.solve_triangular(pullback.tensor([[1.0, 0.0], [0.0, 0.0]]), pullback.ones(2, 1), upper=True)
    assert X.flatten().tolist()[1] == float("inf")


def test_lu_solve_solves_with_the_adjoint_and_from_the_right() -> None:
    A, B = _matrices(3, 3, complex=True), _matrices(3, 3, complex=True)
    factors = L.lu_factor(A)
    _close(A.mH @ L.lu_solve(*factors, B, adjoint=True), B)
    _close(L.lu_solve(*factors, B, left=False) @ A, B)


def test_ldl_solves_symmetric_systems() -> None:
    if lapack._library() is None:
        pytest.importorskip("scipy")
    M, B = _matrices(2, 4, 4), _matrices(4, 2)
    A = M + M.mT
    _close(A @ L.ldl_solve(*L.ldl_factor(A), B), B.expand(2, 4, 2))


def test_results_have_names() -> None:
    result = L.svd(pullback.eye(2))
    assert (result.U is result[0], result.S is result[1], result.Vh is result[2]) == (True, True, True)
    assert repr(L.qr(pullback.eye(2))).startswith("pullback.return_types.linalg_qr(\nQ=")


def test_singular_matrices_are_reported_by_position() -> None:
    batch = pullback.stack([pullback.eye(2), pullback.ones(2, 2)])
    assert L.inv_ex(batch).info.tolist() == [0, 2]
    assert L.solve_ex(batch, pullback.ones(2, 2)).info.tolist() == [0, 2]
    assert L.lu_factor_ex(batch).info.tolist() == [0, 2]
    with pytest.raises(L.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        L.inv(batch)


def test_matrices_that_are_not_positive_definite_are_reported_by_minor() -> None:
    batch = pullback.stack([pullback.eye(2), pullback.tensor([[1.0, 2.0], [2.0, 1.0]])])
    assert L.cholesky_ex(batch).info.tolist() == [0, 2]
    with pytest.raises(L.LinAlgError, match=r"\(Batch element 1\): .*the leading minor of order 2"):
        L.cholesky(batch)


def test_a_repeated_singular_value_has_a_gradient_if_only_values_are_used() -> None:
    A = pullback.eye(3, dtype=pullback.float64, requires_grad=True)
    L.svdvals(A).sum().backward()
    _close(A.grad, pullback.eye(3, dtype=pullback.float64))
    B = pullback.eye(2, dtype=pullback.float64, requires_grad=True)
    L.eigh(B).eigenvalues.sum().backward()
    _close(B.grad, pullback.eye(2, dtype=pullback.float64))


def test_a_loss_that_depends_on_phases_is_refused() -> None:
    A = pullback.tensor([[1.0, 1j], [-1j, 3.0]], requires_grad=True)
    with pytest.raises(RuntimeError, match="specified up to multiplication by"):
        L.eigh(A).eigenvectors.imag.sum().backward()


def test_results_can_be_written_to_given_tensors() -> None:
    A, out = _matrices(3, 3), pullback.empty(0, dtype=pullback.float64)
    assert L.inv(A, out=out) is out
    _close(A @ out, pullback.eye(3, dtype=pullback.float64))
    Q, R = pullback.empty(0, dtype=pullback.float64), pullback.empty(0, dtype=pullback.float64)
    L.qr(A, out=(Q, R))
    _close(Q @ R, A)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_exponential_of_a_skew_matrix_is_orthogonal(scale: float) -> None:
    A = _matrices(3, 4, 4) * scale
    rotation = L.matrix_exp(A - A.mT)
    np.testing.assert_allclose((rotation @ rotation.mT).numpy(), np.broadcast_to(np.eye(4), (3, 4, 4)), atol=1e-10)


def test_multi_dot_multiplies_in_any_order() -> None:
    matrices = [_matrices(2, 7), _matrices(7, 3), _matrices(3, 5), _matrices(5)]
    _close(L.multi_dot(matrices), matrices[0] @ matrices[1] @ matrices[2] @ matrices[3])


def test_tensorsolve_and_tensorinv_invert_tensordot() -> None:
    A, B = _matrices(2, 3, 6), _matrices(2, 3)
    _close(pullback.tensordot(A, L.tensorsolve(A, B), 1), B)
    _close(pullback.tensordot(L.tensorinv(A), B, 2), L.tensorsolve(A, B))


def test_low_rank_approximations_find_a_low_rank() -> None:
    A = _matrices(6, 2) @ _matrices(2, 5)
    U, S, V = pullback.svd_lowrank(A, 2)
    _close(U * S @ V.mT, A)
    assert pullback.pca_lowrank(A, 2)[2].shape == (5, 2)


def test_lobpcg_finds_generalized_eigenvalues() -> None:
    M = _matrices(6, 6)
    A, B = M + M.mT, M @ M.mT + pullback.eye(6, dtype=pullback.float64)
    values, vectors = pullback.lobpcg(A, 2, B)
    _close(A @ vectors, B @ vectors * values)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(0, 2, 3), (2, 0, 3), (2, 2, 0)])
def test_products_of_bools_without_a_product_are_no_error(rows: int, inner: int, columns: int) -> None:
    left, right = (pullback.ones(size, dtype=pullback.bool) for size in ((rows, inner), (inner, columns)))
    for product in (
        left @ right,
        pullback.nn.functional.linear(left, right.T),
        pullback.bmm(left[None], right[None])[0],
    ):
        assert product.dtype is pullback.bool
        assert product.tolist() == [[False] * columns] * rows


def test_products_of_bools_are_refused() -> None:
    some = pullback.ones(2, 2, dtype=pullback.bool)
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'Bool'"):
        some @ some


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 5), (0, 0)])
@pytest.mark.parametrize("order", [None, 1, -2, float("inf")])
def test_the_condition_of_a_matrix_without_elements_is_zero(shape: tuple[int, ...], order: Any) -> None:
    condition = pullback.linalg.cond(pullback.ones(shape), order)
    assert condition.shape == shape[:-2]
    assert condition.eq(0).all()


def test_distances_of_points_without_coordinates_are_zero() -> None:
    assert pullback.nn.functional.pdist(pullback.ones(3, 0), float("inf")).tolist() == [0.0, 0.0, 0.0]
