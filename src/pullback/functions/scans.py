"""Running sums and products, and running extrema with named results."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.functions.reductions import _require_differentiable
from pullback.tensor.arguments import the_dim
from pullback.tensor.return_types import named_results
from pullback.tensor.tensor import Tensor


@declare(found="torch and method")
def cumsum(input: Tensor, dim: Any = None, *, dtype: Any = None, out: Any = None, axis: Any = None) -> Any:
    """The sums of all elements up to each along `dim`.

    The result has the shape of `input`, in `dtype` if given; integers become int64. y[i] = x[0] + ... + x[i].
    """
    if dim is None:
        dim = the_dim("cumsum", axis)
    if dtype is not None:
        _require_differentiable(input, dtype)
    elif isinstance(out, Tensor):
        dtype = out.dtype
    return G.cumsum(input, dim, dtype=dtype, out=out)


@declare(found="torch and method")
def cumprod(input: Tensor, dim: Any = None, *, dtype: Any = None, out: Any = None, axis: Any = None) -> Any:
    """The products of all elements up to each along `dim`.

    The result has the shape of `input`, in `dtype` if given; integers become int64. y[i] = x[0] * ... * x[i].
    """
    if dim is None:
        dim = the_dim("cumprod", axis)
    if dtype is not None:
        _require_differentiable(input, dtype)
    elif isinstance(out, Tensor):
        dtype = out.dtype
    return G.cumprod(input, dim, dtype=dtype, out=out)


@declare(found="torch and method")
def cummax(input: Tensor, dim: Any = None, *, out: Any = None, axis: Any = None) -> Any:
    """The largest element up to each along `dim`, and its index.

    Both results have the shape of `input`; of equal elements the last counts. y[i] = max of x[0], ..., x[i].

    >>> import pullback
    >>> pullback.cummax(pullback.tensor([1, 3, 2]), 0).values
    tensor([1, 3, 3])
    """
    if dim is None:
        dim = the_dim("cummax", axis)
    return named_results("cummax", G.cummax, input, dim, out=out)


@declare(found="torch and method")
def cummin(input: Tensor, dim: Any = None, *, out: Any = None, axis: Any = None) -> Any:
    """The smallest element up to each along `dim`, and its index.

    Both results have the shape of `input`; of equal elements the last counts. y[i] = min of x[0], ..., x[i].

    >>> import pullback
    >>> pullback.cummin(pullback.tensor([3, 1, 2]), 0).values
    tensor([3, 1, 1])
    """
    if dim is None:
        dim = the_dim("cummin", axis)
    return named_results("cummin", G.cummin, input, dim, out=out)
