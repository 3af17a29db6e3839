"""Norms of matrices and condition numbers of torch.linalg, composed of vector norms and singular values."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.checks.matrices import require_floating, require_matrix, require_square
from pullback.facts import declare
from pullback.functions.decompositions import linalg_svdvals
from pullback.graph.in_place import write_out
from pullback.modes.interception import taken_whole
from pullback.tensor.arguments import as_numpy_dtype
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor


def linalg_vector_norm(
    x: Tensor,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """The norm of all elements, or of the vectors along `dim`.

    sum(|x|**ord)**(1 / ord); the largest magnitude for `inf`, the least for `-inf`, the number of elements that are not zero
    for 0. `dim` is one dimension or several taken together, which the result lacks unless `keepdim`.

    >>> import pullback
    >>> pullback.linalg.vector_norm(pullback.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    return G.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype, out=out)


@declare(out_dtype="linalg.matrix_norm expected out tensor dtype {0} but got: {1}")
def linalg_matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """The norm of the matrices in two dimensions: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    >>> import pullback
    >>> pullback.linalg.matrix_norm(pullback.tensor([[3., 0.], [0., 4.]]), "nuc")
    tensor(7.)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    require_matrix("linalg.matrix_norm", A._array)
    require_floating("linalg.matrix_norm", A._array)
    order = _matrix_order(ord)
    first, second = _matrix_dims(A, dim)
    if order == "fro":
        result = G.linalg_vector_norm(A, 2, (first, second), keepdim, dtype=dtype)
    elif order == "nuc" or abs(order) == 2:
        result = _from_singular_values(_cast(A, dtype), order, first, second, keepdim)
    else:
        if abs(order) == math.inf:
            first, second = second, first
        sums = G.linalg_vector_norm(A, 1, first, keepdim, dtype=dtype)
        at = second if keepdim or second < first else second - 1
        result = _extreme(sums, order, at, keepdim)
    return result if out is None else write_out("linalg_matrix_norm", out, result)


def _extreme(values: Tensor, order: Any, dim: int, keepdim: bool) -> Tensor:
    """The largest value, which is 0 of none, or the smallest if `order` is negative."""
    if order < 0:
        return G.amin(values, dim, keepdim)
    if values._array.shape[dim] == 0:
        return G.sum(values, dim, keepdim)
    return G.amax(values, dim, keepdim)


def _matrix_order(order: Any) -> Any:
    if isinstance(order, str):
        if order not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")
        return order
    if abs(order) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")
    return order


def _matrix_dims(A: Tensor, dim: Any) -> tuple[int, int]:
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(str(d) for d in dims)}")
    ndim = A._array.ndim
    first, second = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    return first, second


def _cast(A: Tensor, dtype: Any) -> Tensor:
    wanted = as_numpy_dtype(dtype)
    return A if wanted is None or wanted == A._array.dtype else G.to_dtype(A, wanted)


def _from_singular_values(A: Tensor, order: Any, first: int, second: int, keepdim: bool) -> Tensor:
    ndim = A._array.ndim
    rest = [d for d in range(ndim) if d not in (first, second)]
    moved = G.permute(A, (*rest, first, second))
    values = linalg_svdvals(moved)
    if order == "nuc":
        result = G.sum(values, -1, keepdim)
    else:
        result = _extreme(values, order, values._array.ndim - 1, keepdim)
    if not keepdim:
        return result
    whole = G.unsqueeze(result, ndim - 1)
    order_back = sorted(range(ndim), key=[*rest, first, second].__getitem__)
    return G.permute(whole, tuple(order_back))


def linalg_norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    dtype: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """The norm of a vector or of a matrix, as `ord` and the number of dimensions say.

    >>> import pullback
    >>> pullback.linalg.norm(pullback.tensor([3., 4.]))
    tensor(5.)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    ndim = A._array.ndim
    if ord is not None and dims is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if isinstance(ord, str):
        return linalg_matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype, out=out)
    if ord is not None and ((dims is not None and len(dims) == 2) or (dims is None and ndim == 2)):
        return linalg_matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype, out=out)
    return linalg_vector_norm(A, 2.0 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)


@taken_whole
@declare(autocast="float32")
def linalg_cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """The condition number: the norm of a matrix times that of its inverse.

    >>> import pullback
    >>> pullback.linalg.cond(pullback.tensor([[1., 0.], [0., 4.]]))
    tensor(4.)
    """
    if A._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    order = 2 if p is None else p
    if (isinstance(order, str) and order not in ("fro", "nuc")) or (
        not isinstance(order, str) and abs(order) not in (1, 2, math.inf)
    ):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {order}")
    result = _condition(A, order)
    return result if out is None else write_out("linalg_cond", out, result)


def _condition(A: Tensor, order: Any) -> Tensor:
    if A._array.size == 0 and (A._array.shape[-1] == A._array.shape[-2] or not isinstance(order, str)):
        return G.zeros_in_shape(linalg_vector_norm(A, 2, (-2, -1)), A._array.shape[:-2])
    if not isinstance(order, str) and abs(order) == 2:
        values = linalg_svdvals(A)
        last = values._array.ndim - 1
        size = values._array.shape[-1]
        largest, smallest = G.slice_view(values, last, 0, 1, 1), G.slice_view(values, last, size - 1, size, 1)
        quotient = G.div(largest, smallest) if order > 0 else G.div(smallest, largest)
        return G.squeeze_dim(quotient, last)
    require_square(f"linalg.cond(ord={order if isinstance(order, str) else _short(order)})", A._array)
    if order == "nuc":
        from pullback.functions.matrix_functions import linalg_inv

        return G.mul(linalg_matrix_norm(A, "nuc"), linalg_matrix_norm(linalg_inv(A), "nuc"))
    inverse, _ = G.linalg_inv_ex(A)
    product = G.mul(linalg_matrix_norm(A, order), linalg_matrix_norm(inverse, order))
    return G.nan_to_num(product, math.inf, math.inf, -math.inf)


def _short(order: Any) -> str:
    return str(int(order)) if order == order // 1 and abs(order) != math.inf else str(order)
