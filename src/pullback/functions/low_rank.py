"""Approximations of matrices by few singular values, and the extreme eigenvalues of a symmetric matrix."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.facts import declare
from pullback.modes.grad_mode import is_grad_enabled
from pullback.tensor.tensor import Tensor


@declare(written_in="functional", found="torch")
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of the `q` largest singular values of A (of A - M), found from a random sample of the range.

    >>> import pullback
    >>> pullback.svd_lowrank(pullback.eye(3), 2)[1].shape
    pullback.Size([2])
    """
    matrix: Any = A if M is None else G.sub(A, G.expand(M, tuple(A.shape)))
    count = 6 if q is None else q
    rows, columns = matrix._array.shape[-2:]
    # The smaller side is sampled, so that the matrix whose decomposition is computed stays small.
    flipped = rows < columns
    if flipped:
        matrix = _adjoint(matrix)
    basis = _range_basis(matrix, count, 2 if niter is None else niter)
    U, S, Vh = G.linalg_svd(P.matmul(_adjoint(basis), matrix), False)
    left, right = P.matmul(basis, U), _adjoint(Vh)
    return (right, S, left) if flipped else (left, S, right)


def _adjoint(matrix: Any) -> Any:
    turned = G.transpose(matrix, -2, -1)
    return G.conj(turned) if turned._array.dtype.kind == "c" else turned


def _range_basis(A: Any, count: int, steps: int) -> Any:
    """An orthonormal basis of what A makes of random vectors, sharpened by `steps` of power iteration."""
    from pullback.functions.random import randn  # lazy: random numbers are needed by few

    sample = randn(A._array.shape[-1], count, dtype=A.dtype, device=A.device)
    basis = G.linalg_qr(P.matmul(A, sample))[0]
    for _ in range(steps):
        other = G.linalg_qr(P.matmul(_adjoint(A), basis))[0]
        basis = G.linalg_qr(P.matmul(A, other))[0]
    return basis


@declare(written_in="functional", found="torch")
def pca_lowrank(A: Tensor, q: int | None = None, center: Any = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of the rows of A: `svd_lowrank` with the mean of each column taken away."""
    rows, columns = A._array.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    centred: Any = A - P.mean(A, (-2,), True)
    return svd_lowrank(centred, q, niter)


@declare(found="torch")
def lobpcg(
    A: Tensor, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None, iK: Any = None,
    niter: Any = None, tol: Any = None, largest: bool | None = None, method: Any = None, tracker: Any = None,
    ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The `k` largest (or smallest) eigenvalues of A x = e B x for a symmetric A and a positive-definite B.

    All eigenvalues are computed and the others dropped: what PyTorch's iteration converges to. Where a gradient is
    recorded, the symmetric part of A and of B is taken, so that the gradient fits what was computed.
    """
    if is_grad_enabled() and (A._requires_grad or (B is not None and B._requires_grad)):
        A, B = (A + _adjoint(A)) / 2, None if B is None else (B + _adjoint(B)) / 2
    size = A._array.shape[-1]
    count = (1 if X is None else X._array.shape[-1]) if k is None else k
    if size < 3 * count:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={size}) is smaller than 3 x the number of "
            f"requested eigenpairs (={count})"
        )
    if B is None:
        values, vectors = G.linalg_eigh(A)
    else:
        L = P.linalg_cholesky(B)
        half = G.linalg_solve_triangular(L, A, upper=False)
        values, turned = G.linalg_eigh(G.linalg_solve_triangular(_adjoint(L), half, upper=True, left=False))
        vectors = G.linalg_solve_triangular(_adjoint(L), turned, upper=True)
    values_dim, vectors_dim = values._array.ndim - 1, vectors._array.ndim - 1
    if largest is None or largest:
        values, vectors = G.flip(values, (values_dim,)), G.flip(vectors, (vectors_dim,))
    return G.slice_view(values, values_dim, 0, count, 1), G.slice_view(vectors, vectors_dim, 0, count, 1)
