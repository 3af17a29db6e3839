"""Sorting and order statistics with named results."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.facts import declare
from pullback.tensor.return_types import named_results
from pullback.tensor.tensor import Tensor


@declare(found="torch and method")
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: Any = None,
    axis: Any = None,
) -> Any:
    """The elements in order along `dim`, and the indices they had.

    A pair (values, indices) in the shape of `input`: values = input.gather(dim, indices). `descending` reverses the
    order, `stable` keeps that of equal elements.

    >>> import pullback
    >>> pullback.sort(pullback.tensor([3., 1., 2.])).values
    tensor([1., 2., 3.])
    """
    dim = dim if axis is None else axis
    if stable is None:
        return named_results("sort", G.sort, input, dim, descending, out=out)
    return named_results("sort", G.sort_stable, input, stable, dim, descending, out=out)


@declare(found="torch and method")
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False, axis: Any = None
) -> Tensor:
    """The indices that sort along `dim`.

    The result has the shape of `input`, in int64. `descending` begins with the greatest; `stable` keeps equal elements
    in their order. nan counts as the greatest.

    >>> import pullback
    >>> pullback.argsort(pullback.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    dim = dim if axis is None else axis
    return G.argsort(input, dim, descending)


@declare(found="torch and method")
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """The elements in order along the first dimension.

    As `sort(dim=0)`, without the indices; needs one dimension or more.

    >>> import pullback
    >>> pullback.msort(pullback.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    values: Tensor = G.sort(input, 0)[0]
    return values if out is None else G.clone(values, out=out)


@declare(found="torch and method")
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
    axis: Any = None,
) -> Any:
    """The `k` largest (or smallest) elements along `dim`, and their indices.

    A pair (values, indices) in the shape of `input` but with size `k` along `dim`, the last one unless given; in
    order unless `sorted` is False.
    """
    dim = dim if axis is None else axis
    return named_results("topk", G.topk, input, k, dim, largest, sorted, out=out)


@declare(found="torch and method")
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Any:
    """The `k`-th smallest element along `dim`, counted from 1, and its index.

    The results lack `dim`, or have it with size 1 (`keepdim`).

    >>> import pullback
    >>> pullback.kthvalue(pullback.tensor([3, 1, 2]), 2).values
    tensor(2)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return named_results("kthvalue", G.kthvalue, input, k, dim, keepdim, out=out)


@declare(returns="values indices", found="torch and method")
def median(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Any:
    """The lower of the middle elements; along `dim` with its index.

    Without `dim` one element of all. With it, a pair of values and indices without that dimension, or with size 1 there if
    `keepdim`. Of an even number of elements the lower of the two in the middle is taken; NaN wins over every number.

    >>> import pullback
    >>> pullback.median(pullback.tensor([[4.0, 1.0, 3.0], [0.0, 5.0, 2.0]]), dim=1).values
    tensor([3., 2.])
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    if dim is None:
        return G.median_all(input)
    return named_results("median", G.median_dim, input, dim, keepdim, out=out)


@declare(returns="values indices", found="torch and method")
def nanmedian(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Any:
    """The lower of the middle elements that are numbers; along `dim` with its index.

    Over all elements, or a pair of `values` and `indices` along `dim`, which stays with size 1 if `keepdim`.

    >>> import pullback
    >>> pullback.nanmedian(pullback.tensor([3.0, pullback.nan, 1.0]))
    tensor(1.)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    if dim is None:
        return G.nanmedian_all(input)
    return named_results("nanmedian", G.nanmedian_dim, input, dim, keepdim, out=out)


@declare(found="torch and method")
def mode(
    input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None, axis: Any = None, keepdims: Any = None
) -> Any:
    """The most frequent element along `dim`, and an index of it.

    Of several elements that are as frequent it is the smallest. Both results lack `dim`, or have it with size 1
    (`keepdim`).

    >>> import pullback
    >>> pullback.mode(pullback.tensor([2, 1, 2])).values
    tensor(2)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    return named_results("mode", G.mode, input, dim, keepdim, out=out)
