"""Samples of solvers of linear systems."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.samples_decompositions import spread
from tests.derivatives.sampling import Sample, normal

F: Any = pullback
L = F.linalg
PIVOTS = F.tensor([2, 3, 3], dtype=F.int32)


def dominant(x: Any) -> Any:
    """A matrix with a large diagonal, so that its triangles are well conditioned too."""
    return x + 3 * F.eye(x.shape[-1], dtype=x.dtype)


SAMPLES = [
    Sample("solve", lambda a, b: L.solve(dominant(a), b), (normal(2, 3, 3), normal(3, 2)), complex=True),
    Sample("solve-vector", lambda a, b: L.solve(dominant(a), b), (normal(2, 3, 3), normal(2, 3)), complex=True),
    Sample("solve-right", lambda a, b: L.solve(dominant(a), b, left=False), (normal(3, 3), normal(2, 3)), complex=True),
    *[
        Sample(
            f"solve_triangular-{upper}-{left}-{unit}",
            lambda a, b, u=upper, l=left, n=unit: L.solve_triangular(dominant(a), b, upper=u, left=l, unitriangular=n),
            (normal(2, 3, 3), normal(3, 3)), complex=True,
        )
        for upper in (True, False) for left in (True, False) for unit in (True, False)
    ],
    Sample("triangular_solve", lambda b, a: F.triangular_solve(b, dominant(a)), (normal(3, 2), normal(3, 3)), complex=True),
    Sample(
        "triangular_solve-transpose", lambda b, a: F.triangular_solve(b, dominant(a), False, True)[0],
        (normal(3, 2), normal(3, 3)), complex=True,
    ),
    Sample(
        "cholesky_solve", lambda b, a: F.cholesky_solve(b, dominant(a).tril()), (normal(3, 2), normal(3, 3)), complex=True,
    ),
    Sample(
        "cholesky_solve-upper", lambda b, a: F.cholesky_solve(b, dominant(a).triu(), True), (normal(3, 2), normal(3, 3)),
        complex=True,
    ),
    Sample("cholesky_inverse", lambda a: F.cholesky_inverse(dominant(a).tril()), (normal(2, 3, 3),), complex=True),
    *[
        Sample(
            f"lu_solve-{left}-{adjoint}",
            lambda a, b, l=left, j=adjoint: L.lu_solve(dominant(a), PIVOTS, b, left=l, adjoint=j),
            (normal(3, 3), normal(3, 3)), complex=True,
        )
        for left in (True, False) for adjoint in (True, False)
    ],
    Sample("lstsq", lambda a, b: L.lstsq(a, b).solution, (normal(4, 2), normal(4, 3)), complex=True, atol=1e-5),
    Sample("lstsq-residuals", lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], (normal(4, 2), normal(4, 1)), atol=1e-5),
    Sample("lstsq-wide", lambda a, b: L.lstsq(a, b).solution, (normal(2, 3), normal(2, 1)), complex=True, atol=1e-5),
    Sample("tensorsolve", lambda a, b: L.tensorsolve(spread(a).reshape(2, 2, 4), b), (normal(4, 4), normal(2, 2))),
    Sample("tensorinv", lambda a: L.tensorinv(spread(a).reshape(2, 2, 4)), (normal(4, 4),)),
]  # fmt: skip
