"""Samples of determinants, inverses, exponentials and norms of matrices."""

from __future__ import annotations

from math import inf
from typing import Any

import pullback
from tests.derivatives.samples_decompositions import positive, spread
from tests.derivatives.sampling import Maker, Sample, normal

F: Any = pullback
L = F.linalg


def singular(*shape: int) -> Maker:
    """Matrices whose last row is twice the first."""

    def make(rng: Any, complex: bool) -> Any:
        values = normal(*shape)(rng, complex)
        values[..., -1, :] = 2 * values[..., 0, :]
        return values

    return make


SAMPLES = [
    Sample("det", L.det, (normal(2, 3, 3),), complex=True),
    Sample("det-singular", L.det, (singular(2, 3, 3),), atol=1e-5),
    Sample("slogdet", L.slogdet, (normal(2, 3, 3),), complex=True),
    Sample("logdet", lambda x: F.logdet(positive(x)), (normal(3, 3),)),
    Sample("inv", lambda x: L.inv(spread(x)), (normal(2, 3, 3),), complex=True),
    Sample("pinv-tall", L.pinv, (normal(4, 2),), complex=True, atol=1e-5),
    Sample("pinv-wide", L.pinv, (normal(2, 3),), complex=True, atol=1e-5),
    Sample("pinv-hermitian", lambda x: L.pinv(positive(x), hermitian=True), (normal(3, 3),), complex=True),
    Sample("matrix_exp", L.matrix_exp, (normal(2, 3, 3),), complex=True),
    Sample("matrix_power", lambda x: L.matrix_power(x, 3), (normal(2, 2, 2),), complex=True),
    Sample("matrix_power-negative", lambda x: L.matrix_power(spread(x), -2), (normal(2, 2),)),
    Sample("vander", lambda x: L.vander(x, N=3), (normal(2, 2),), complex=True),
    Sample("vander-older", F.vander, (normal(3),)),
    *[
        Sample(
            f"matrix_norm-{order}", lambda x, o=order: L.matrix_norm(x, o), (normal(2, 3, 2),), complex=True, atol=1e-4
        )
        for order in ("fro", "nuc", 1, -1, 2, -2, inf, -inf)
    ],
    Sample("matrix_norm-dims", lambda x: L.matrix_norm(x, "nuc", (0, 2), True), (normal(2, 2, 3),), atol=1e-4),
    *[
        Sample(f"cond-{p}", lambda x, p=p: L.cond(spread(x), p), (normal(3, 3),), atol=1e-3)
        for p in (None, "fro", 1, -2)
    ],
]
