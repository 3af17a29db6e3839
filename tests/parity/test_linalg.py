"""Linear algebra on PyTorch and on pullback: values, nodes, gradients to second order, and refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from tests.parity.comparison import compare

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(7)
SQUARE, TALL, RIGHT = RNG.normal(size=(2, 3, 3)), RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 3, 2))
SYMMETRIC = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(3)
COMPLEX = SQUARE + 1j * RNG.normal(size=(2, 3, 3))
VECTOR = RNG.normal(size=3)

VALUES = {
    "det": (lambda t, F, a: t.linalg.det(a), SQUARE),
    "det complex": (lambda t, F, a: t.linalg.det(a), COMPLEX),
    "det of nothing": (lambda t, F, a: t.linalg.det(a), np.zeros((2, 0, 0))),
    "slogdet": (lambda t, F, a: tuple(t.linalg.slogdet(a)), COMPLEX),
    "logdet": (lambda t, F, a: t.logdet(a), SYMMETRIC),
    "inv": (lambda t, F, a: t.linalg.inv(a), COMPLEX),
    "inv of a transposed matrix": (lambda t, F, a: a.mT.inverse(), SQUARE),
    "inv single precision": (lambda t, F, a: t.linalg.inv(a), SQUARE.astype(np.float32)),
    "pinv": (lambda t, F, a: t.linalg.pinv(a), TALL),
    "solve": (lambda t, F, a, b: t.linalg.solve(a, b), SQUARE, RIGHT),
    "solve of one vector": (lambda t, F, a, b: t.linalg.solve(a[0], b), SQUARE, VECTOR),
    "solve from the right": (lambda t, F, a, b: t.linalg.solve(a, b.mT, left=False), SQUARE, RIGHT),
    "solve_triangular": (lambda t, F, a, b: t.linalg.solve_triangular(a, b, upper=True), SYMMETRIC, RIGHT),
    "cholesky": (lambda t, F, a: t.linalg.cholesky(a), SYMMETRIC),
    "cholesky older": (lambda t, F, a: t.cholesky(a, upper=True), SYMMETRIC),
    "cholesky_solve": (lambda t, F, a, b: t.cholesky_solve(b, a), SYMMETRIC, RIGHT),
    "cholesky_inverse": (lambda t, F, a: t.cholesky_inverse(a), SYMMETRIC),
    "svdvals": (lambda t, F, a: t.linalg.svdvals(a), TALL),
    "svd": (lambda t, F, a: t.linalg.svd(a, full_matrices=False).S, TALL),
    "eigvalsh": (lambda t, F, a: t.linalg.eigvalsh(a), SYMMETRIC),
    "eigh of the upper triangle": (lambda t, F, a: t.linalg.eigh(a, UPLO="U").eigenvalues, SQUARE),
    "lu": (lambda t, F, a: tuple(t.linalg.lu(a)), TALL),
    "lu_factor": (lambda t, F, a: tuple(t.linalg.lu_factor(a)), COMPLEX),
    "lu_solve": (lambda t, F, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b, adjoint=True), SQUARE, RIGHT),
    "lstsq": (lambda t, F, a, b: t.linalg.lstsq(a, b, driver="gelsd").solution, TALL, RNG.normal(size=(2, 4, 1))),
    "matrix_exp": (lambda t, F, a: t.linalg.matrix_exp(a), COMPLEX),
    "matrix_power": (lambda t, F, a: t.linalg.matrix_power(a, -3), SQUARE),
    "matrix_norm": (lambda t, F, a: t.linalg.matrix_norm(a, "nuc", keepdim=True), TALL),
    "norm": (lambda t, F, a: t.linalg.norm(a, 2, (1, 2)), TALL),
    "cond": (lambda t, F, a: t.linalg.cond(a), SQUARE),
    "vander": (lambda t, F, a: t.linalg.vander(a, N=4), VECTOR),
    "vecdot": (lambda t, F, a: t.linalg.vecdot(a, a.mT), COMPLEX),
    "cross": (lambda t, F, a: t.cross(a[0], a[1], dim=1), SQUARE),
    "householder_product": (lambda t, F, a: t.linalg.householder_product(a, a[..., 0, :]), TALL),
    "multi_dot": (lambda t, F, a, b: t.linalg.multi_dot([a[0, 0], a[1], b[0]]), SQUARE, RIGHT),
    "kron": (lambda t, F, a, b: t.kron(a, b), VECTOR, RIGHT),
    "tensordot": (lambda t, F, a, b: t.tensordot(a, b, ([0, 2], [0, 1])), SQUARE, RIGHT),
    "einsum": (lambda t, F, a, b: t.einsum("bij,bjk->bik", a, b), SQUARE, RIGHT),
    "einsum trace": (lambda t, F, a: t.einsum("bii->b", a), SQUARE),
    "matrix_rank": (lambda t, F, a: t.linalg.matrix_rank(a), np.ones((2, 3, 3))),
}

REFUSALS = {
    "not square": lambda t: t.linalg.det(t.ones(3, 2)),
    "integers": lambda t: t.linalg.inv(t.ones(2, 2, dtype=t.int64)),
    "half precision": lambda t: t.linalg.cholesky(t.eye(2, dtype=t.float16)),
    "a vector": lambda t: t.linalg.qr(t.ones(2)),
    "not positive-definite": lambda t: t.linalg.cholesky(-t.eye(2)),
    "not positive-definite in a batch": lambda t: t.linalg.cholesky(t.stack([t.eye(2), -t.eye(2)])),
    "singular": lambda t: t.linalg.inv(t.ones(2, 2)),
    "singular in a batch": lambda t: t.linalg.solve(t.stack([t.eye(2), t.ones(2, 2)]), t.ones(2, 2)),
    "zero pivot": lambda t: t.linalg.lu_factor(t.zeros(2, 2)),
    "incompatible": lambda t: t.linalg.solve(t.eye(2), t.ones(3, 2)),
    "dtypes": lambda t: t.linalg.solve(t.eye(2), t.ones(2).double()),
    "driver": lambda t: t.linalg.lstsq(t.eye(2), t.eye(2), driver="best"),
    "mode": lambda t: t.linalg.qr(t.eye(2), mode="some"),
    "triangle": lambda t: t.linalg.eigh(t.eye(2), UPLO="X"),
    "not finite": lambda t: t.linalg.svd(t.eye(2) * float("nan")),
    "order": lambda t: t.linalg.matrix_norm(t.eye(2), 3),
    "three dimensions": lambda t: t.linalg.norm(t.ones(2, 2, 2), 2),
    "condition": lambda t: t.linalg.cond(t.eye(2), 3),
    "gradient of a complete Q": lambda t: t.linalg.qr(t.ones(3, 2, requires_grad=True), "complete").Q.sum().backward(),
    "gradient of a phase": lambda t: t.linalg.eigh(
        t.tensor([[1.0, 1j], [-1j, 3.0]], requires_grad=True)
    ).eigenvectors.imag.sum().backward(),
    "einsum: few": lambda t: t.einsum("ij,jk->ik", t.eye(2)),
    "einsum: unknown": lambda t: t.einsum("ij->k", t.eye(2)),
    "einsum: sizes": lambda t: t.einsum("ij,ij->ij", t.ones(2, 3), t.ones(3, 4)),
    "einsum: letters": lambda t: t.einsum("i1->i", t.eye(2)),
    "mm": lambda t: t.mm(t.ones(2, 3), t.ones(2, 3)),
    "batches": lambda t: t.matmul(t.ones(2, 3, 4), t.ones(3, 4, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    call, *arrays = VALUES[name]
    compare(torch, call, arrays)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_begin_with_the_words_of_pytorch(name: str) -> None:
    expected, actual = _refusal(torch, name), _refusal(pullback, name)
    assert type(actual).__name__.strip("_") == type(expected).__name__.strip("_")
    assert str(actual)[:60] == str(expected).splitlines()[0][:60]


def _refusal(library: Any, name: str) -> Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as info:
            REFUSALS[name](library)
    return info.value
