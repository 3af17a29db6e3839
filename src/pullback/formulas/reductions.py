"""Gradients of means and products."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback.typing import Dims, Shape


def restore_reduced(input: Any, shape: Shape, dim: Dims, keepdim: bool) -> Any:
    """A reduced tensor with its reduced dimensions back, each of size 1."""
    if keepdim or shape == ():
        return input
    if dim is None or dim == ():
        return F.reshape(input, (1,) * len(shape))
    return F.reshape(input, tuple([1 if i in dim else n for i, n in enumerate(shape)]))


def mean_grad(grad: Any, shape: Shape, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a mean: `grad`, divided by the count, at every element."""
    axes = range(len(shape)) if dim is None or dim == () or shape == () else dim
    return F.expand_reduced(grad, shape, dim, keepdim) / math.prod([shape[a] for a in axes])


def product_of_others(input: Any, dim: int) -> Any:
    """At each element the product of all others along `dim`; right with any number of zeros."""
    before = F.cumprod(F.shift(input, dim, 1, 1), dim)
    after = F.flip(F.cumprod(F.flip(F.shift(input, dim, -1, 1), (dim,)), dim), (dim,))
    return before * after


def prod_grad(grad: Any, input: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of a product along one dimension."""
    grad = F.to_dtype(grad, input.dtype)
    if input.ndim == 0:
        return grad
    return F.expand_reduced(grad, tuple(input.shape), (dim,), keepdim) * F.conj(F.product_of_others(input, dim))


def prod_all_grad(grad: Any, input: Any) -> Any:
    """The gradient of the product of everything."""
    grad = F.to_dtype(grad, input.dtype)
    if input.ndim == 0:
        return grad
    others = F.product_of_others(F.reshape(input, (-1,)), 0)
    return F.expand_reduced(grad, tuple(input.shape), None, False) * F.conj(F.reshape(others, tuple(input.shape)))
