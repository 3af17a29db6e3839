"""Norms and distances of vectors."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.facts import declare
from pullback.functions.losses import _broadcast, _kept_above, plus_number
from pullback.tensor.tensor import Tensor


@declare(foreach=True, bare=True, written_in="functional", found="torch and method")
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """The norm of the tensor seen as one vector, or of its vectors along `dim`; "nuc" is the nuclear norm of matrices.

    `p` is the order of the norm: a number, infinity, "fro" (2) or "nuc"; the result lacks `dim`, or has it with size
    1 (`keepdim`). y = (sum over i of |x_i| ** p) ** (1 / p). `linalg.vector_norm` and `linalg.matrix_norm` say which
    of the two is meant.

    >>> import pullback
    >>> pullback.norm(pullback.tensor([3., 4.]))
    tensor(5.)
    """
    if p == "nuc":
        from pullback import linalg  # lazy: linalg is above functions

        dims = (-2, -1) if dim is None else dim
        return linalg.matrix_norm(input, "nuc", dims, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    order = 2 if p is None or p == "fro" else p
    return G.linalg_vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)


@declare(functional=True, written_in="c", found="torch")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norms of the differences of two lists of vectors.

    Both are (N, D), or (D,), and broadcast; the result is (N,), or has the last dimension with size 1 (`keepdim`). y =
    (sum over d of abs(x1 - x2 + eps) ** p) ** (1 / p).

    >>> import pullback
    >>> pullback.nn.functional.pairwise_distance(pullback.zeros(1, 2), pullback.tensor([[3., 4.]]))
    tensor([5.0000])
    """
    first: Any = x1
    last = max(first.ndim, x2.ndim) - 1
    return G.norm_dim(plus_number(first - x2, eps), p, last, keepdim)


@declare(functional=True, written_in="c", found="torch")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08, *, axis: Any = None) -> Tensor:
    """The cosines of the angles between two lists of vectors, each norm kept above `eps`.

    `x1` and `x2` broadcast; the result lacks `dim`. y = sum(x1 * x2) / (max(|x1|, eps) * max(|x2|, eps)).
    """
    dim = dim if axis is None else axis
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    first, second = _broadcast(x1, x2)
    if first.is_complex():
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_type_name(first._array.dtype)}"
        )
    first_size = _kept_above(G.linalg_vector_norm(first, 2, dim, True), eps)
    second_size = _kept_above(G.linalg_vector_norm(second, 2, dim, True), eps)
    return P.sum((first / first_size) * (second / second_size), dim)


@declare(found="torch")
def frobenius_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Tensor:
    """The square root of the sum of squares."""
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return G.norm_dim(input, 2, dim, keepdim, out=out)


@declare(found="torch")
def nuclear_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Tensor:
    """The sum of singular values."""
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return norm(input, "nuc", dim, keepdim, out)


@declare(found="torch")
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one, which keep their places."""
    if dim == -1:
        return norm(v, pow)
    return norm(v, pow, tuple([d for d in range(v.ndim) if d != dim % v.ndim]), True)
