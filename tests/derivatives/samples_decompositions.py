"""Samples of decompositions. Losses are made not to depend on the phases of vectors, which are arbitrary."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, normal

F: Any = pullback
L = F.linalg


def positive(x: Any) -> Any:
    """A Hermitian positive-definite matrix."""
    return x @ x.mH + 2 * F.eye(x.shape[-1], dtype=x.dtype)


def hermitian(x: Any) -> Any:
    return x + x.mH


def spread(x: Any) -> Any:
    """A matrix with well separated eigenvalues and singular values."""
    size = x.shape[-1]
    return 0.2 * x + F.diag(F.arange(1, size + 1, dtype=F.float64)).to(x.dtype)[: x.shape[-2]]


def projections(vectors: Any) -> Any:
    """What remains of unit vectors when their phases are taken away."""
    return vectors.unsqueeze(-2) * vectors.conj().unsqueeze(-3)


def svd_without_phases(x: Any) -> Any:
    U, S, Vh = L.svd(x, full_matrices=False)
    return projections(U), S, U @ Vh


def eigh_without_phases(x: Any) -> Any:
    values, vectors = L.eigh(hermitian(spread(x)))
    return values, projections(vectors)


def eig_without_phases(x: Any) -> Any:
    values, vectors = L.eig(spread(x))
    return values, projections(vectors)


SAMPLES = [
    Sample("cholesky", lambda x: L.cholesky(positive(x)), (normal(2, 3, 3),), complex=True),
    Sample("cholesky-upper", lambda x: L.cholesky(positive(x), upper=True), (normal(3, 3),), complex=True),
    Sample("cholesky-older", lambda x: F.cholesky(positive(x)), (normal(3, 3),), complex=True),
    Sample("qr", lambda x: L.qr(x), (normal(2, 3, 3),), complex=True, atol=1e-5),
    Sample("qr-tall", lambda x: L.qr(x), (normal(4, 2),), complex=True, atol=1e-5),
    Sample("qr-wide", lambda x: L.qr(x), (normal(2, 4),), complex=True, atol=1e-5),
    Sample("svd", svd_without_phases, (normal(2, 3, 3),), complex=True, atol=1e-4),
    Sample("svd-tall", svd_without_phases, (normal(4, 2),), complex=True, atol=1e-4),
    Sample("svd-wide", svd_without_phases, (normal(2, 4),), complex=True, atol=1e-4),
    Sample("svdvals", L.svdvals, (normal(2, 3, 2),), complex=True),
    Sample("eigh", eigh_without_phases, (normal(2, 3, 3),), complex=True, atol=1e-4),
    Sample("eigvalsh", lambda x: L.eigvalsh(hermitian(x)), (normal(3, 3),), complex=True, atol=1e-4),
    Sample("eig", eig_without_phases, (normal(3, 3),), complex=True, atol=1e-4),
    Sample("eigvals", lambda x: L.eigvals(spread(x)), (normal(2, 3, 3),), complex=True, atol=1e-4),
    Sample("lu", lambda x: L.lu(spread(x))[1:], (normal(2, 3, 3),), complex=True),
    Sample("lu-wide", lambda x: L.lu(x)[1:], (normal(2, 4),), complex=True, atol=1e-5),
    Sample("lu-tall", lambda x: L.lu(x)[1:], (normal(4, 2),), complex=True, atol=1e-5),
    Sample("lu_factor", lambda x: L.lu_factor(spread(x))[0], (normal(3, 3),), complex=True),
    Sample("lu_unpack", lambda x: F.lu_unpack(x, F.tensor([2, 2], dtype=F.int32))[1:], (normal(3, 2),), complex=True),
    Sample("householder_product", L.householder_product, (normal(4, 3), normal(2)), complex=True),
    Sample("ormqr", lambda a, t, c: F.ormqr(a, t, c), (normal(3, 2), normal(2), normal(3, 2)), complex=True),
    Sample(
        "ormqr-right", lambda a, t, c: F.ormqr(a, t, c, False, True), (normal(3, 2), normal(2), normal(2, 3)),
        complex=True,
    ),
]  # fmt: skip
