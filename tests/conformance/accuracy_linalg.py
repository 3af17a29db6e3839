"""The accuracy of linear algebra on badly conditioned matrices: residuals in units of the dtype's spacing.

What has a backward stable algorithm is measured by what it leaves of its equation, relative to the sizes of its parts;
determinants and functions of matrices by their distance from mpmath's value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from mpmath import mp

import pullback

from .accuracy_measurement import Measurement

Array = Any
Residual = Callable[[Any, Any], list[float]]
"""Of a library and a matrix of its: residuals, in float64."""


def wide(tensor: Any) -> Array:
    """A result in the widest numbers there are."""
    array = tensor.detach().resolve_conj().numpy()
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def size(*arrays: Array) -> float:
    return float(np.prod([np.sqrt(np.sum(np.abs(a) ** 2)) for a in arrays]))


def ratio(rest: Array, *sizes: Array) -> float:
    return size(rest) / max(size(*sizes), 1e-300)


def adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


def orthogonality(q: Array) -> float:
    return ratio(adjoint(q) @ q - np.eye(q.shape[-1]), np.eye(q.shape[-1]))


def right_side(module: Any, a: Any) -> Any:
    return module.arange(1, a.shape[0] + 1).to(a.dtype).unsqueeze(-1) / a.shape[0]


def solve(m: Any, a: Any) -> list[float]:
    b = right_side(m, a)
    x = wide(m.linalg.solve(a, b))
    return [ratio(wide(a) @ x - wide(b), wide(a), x)]


def inv(m: Any, a: Any) -> list[float]:
    x = wide(m.linalg.inv(a))
    return [ratio(wide(a) @ x - np.eye(len(x)), wide(a), x)]


def lu_solve(m: Any, a: Any) -> list[float]:
    b = right_side(m, a)
    x = wide(m.linalg.lu_solve(*m.linalg.lu_factor(a), b))
    p, lower, upper = (wide(t) for t in m.linalg.lu(a))
    return [ratio(wide(a) @ x - wide(b), wide(a), x), ratio(p @ lower @ upper - wide(a), lower, upper)]


def svd(m: Any, a: Any) -> list[float]:
    u, s, vh = (wide(t) for t in m.linalg.svd(a, full_matrices=False))
    return [ratio(u * s @ vh - wide(a), wide(a)), orthogonality(u), orthogonality(adjoint(vh))]


def eigh(m: Any, a: Any) -> list[float]:
    hermitian = a + a.mH
    values, vectors = (wide(t) for t in m.linalg.eigh(hermitian))
    return [ratio(vectors * values @ adjoint(vectors) - wide(hermitian), wide(hermitian)), orthogonality(vectors)]


def eig(m: Any, a: Any) -> list[float]:
    values, vectors = (wide(t) for t in m.linalg.eig(a))
    return [ratio(wide(a) @ vectors - vectors * values, wide(a), vectors)]


def qr(m: Any, a: Any) -> list[float]:
    q, r = (wide(t) for t in m.linalg.qr(a))
    return [ratio(q @ r - wide(a), wide(a)), orthogonality(q)]


def cholesky(m: Any, a: Any) -> list[float]:
    positive = a @ a.mH + m.eye(a.shape[0]).to(a.dtype) * m.linalg.norm(a) ** 2 * 1e-5
    factor = wide(m.linalg.cholesky(positive))
    return [ratio(factor @ adjoint(factor) - wide(positive), wide(positive))]


def lstsq(m: Any, a: Any) -> list[float]:
    tall = a[:, : a.shape[0] // 3]
    b = right_side(m, a)
    x = wide(m.linalg.lstsq(tall, b).solution)
    rest = wide(tall) @ x - wide(b)
    return [ratio(adjoint(wide(tall)) @ rest, wide(tall), size(wide(tall), x) + size(wide(b)) * np.ones(1))]


def pinv(m: Any, a: Any) -> list[float]:
    tall = a[:, : a.shape[0] // 3]
    x = wide(m.linalg.pinv(tall))
    return [ratio(wide(tall) @ x @ wide(tall) - wide(tall), wide(tall), wide(tall), x)]


def triangular(m: Any, a: Any) -> list[float]:
    b = right_side(m, a)
    upper = a.triu()
    x = wide(m.linalg.solve_triangular(upper, b, upper=True))
    return [ratio(wide(upper) @ x - wide(b), wide(upper), x)]


def ldl(m: Any, a: Any) -> list[float]:
    hermitian, b = a + a.mH, right_side(m, a)
    x = wide(m.linalg.ldl_solve(*m.linalg.ldl_factor(hermitian), b))
    return [ratio(wide(hermitian) @ x - wide(b), wide(hermitian), x)]


def determinant(m: Any, a: Any) -> list[float]:
    """The error of a determinant is that of a slightly different matrix: relative to the condition."""
    exact = mp.det(mp.matrix(a.detach().numpy().tolist()))
    condition = float(np.linalg.cond(a.detach().numpy().astype(np.float64))) or 1.0
    sign, logarithm = m.linalg.slogdet(a)
    errors = [float(abs((mp.mpf(m.linalg.det(a).item()) - exact) / exact)) if abs(exact) > 1e-30 else 0.0]
    errors.append(float(abs(mp.mpf(logarithm.item()) - mp.log(abs(exact)))))
    return [*(e / condition for e in errors), float(sign.item() != mp.sign(exact))]


def matrix_exp(m: Any, a: Any) -> list[float]:
    small = a[:8, :8] / m.linalg.norm(a[:8, :8], 1) * 20
    with mp.workprec(300):
        exact = np.array(mp.expm(mp.matrix(small.detach().numpy().tolist())).tolist(), dtype=np.longdouble)
    return [ratio(wide(m.linalg.matrix_exp(small)) - exact, exact) / 20]


def matrix_power(m: Any, a: Any) -> list[float]:
    small = a / m.linalg.norm(a, 2)
    exact = np.linalg.multi_dot([wide(small)] * 7)
    return [ratio(wide(m.linalg.matrix_power(small, 7)) - exact, *([wide(small)] * 7))]


RESIDUALS: dict[str, Residual] = {
    f"linalg.{f.__name__}": f
    for f in (
        solve,
        inv,
        lu_solve,
        svd,
        eigh,
        eig,
        qr,
        cholesky,
        lstsq,
        pinv,
        triangular,
        ldl,
        matrix_exp,
        matrix_power,
    )
}
RESIDUALS["linalg.det"] = determinant


def matrices(dtype: Any) -> dict[str, Array]:
    """Badly conditioned matrices of several kinds."""
    generator = np.random.default_rng(0)
    normal = generator.standard_normal((60, 60))
    q = np.linalg.qr(normal)[0]
    i = np.arange(1, 13)
    found = {
        "random": normal[:30, :30],
        "hilbert": 1.0 / (i[:, None] + i - 1),
        "graded": normal[:30, :30] * np.geomspace(1e-6, 1e6, 30)[:, None],
        "singular values": (q * np.geomspace(1, 1e-6, 60)) @ q[::-1].T,
        "clustered": (q * (1 + 1e-6 * np.arange(60))) @ q.T,
        "large": normal[:12, :12] * 1e15,
        "tiny": normal[:12, :12] * 1e-15,
        "triangular": np.triu(np.ones((30, 30))) - 2 * np.triu(np.ones((30, 30)), 1),
        "small": normal[:3, :3],
    }
    return {name: matrix.astype(dtype) for name, matrix in found.items()}


def labels() -> list[str]:
    """The names of the measurements, in order."""
    return list(RESIDUALS)


def measure(label: str, dtype: Any) -> Measurement:
    """Measure one operation over all matrices."""
    measurement = Measurement(f"{label} {np.dtype(dtype)}")
    eps = float(np.finfo(dtype).eps)
    for kind, matrix in matrices(dtype).items():
        pair = []
        for module in (pullback, torch):
            try:
                pair.append([r / eps for r in RESIDUALS[label](module, module.from_numpy(matrix))])
            except RuntimeError as error:
                pair.append([np.inf if "singular" in str(error) or "converge" in str(error) else np.nan])
        for number, (actual, theirs) in enumerate(zip(*pair, strict=False)):
            # Residuals are sums of many roundings in no fixed order: a factor of two says nothing.
            measurement.add(f"{kind}, residual {number}", [kind], [actual], [theirs], slack=4)
    return measurement


def measure_all(index: int) -> list[tuple[str, int]]:
    """The lines of one operation, each with the number of its flags."""
    warnings.simplefilter("ignore")
    found = (measure(labels()[index], dtype) for dtype in (np.float32, np.float64))
    return [(str(m), len(m.flags)) for m in found]
