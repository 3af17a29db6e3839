"""Gradients of means and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pullback.generated as F
from pullback.backend.meta_array import is_meta
from pullback.facts import declare
from pullback.kernels.reductions import can_divide, is_nan_beside_zeros
from pullback.tensor.tensor import Tensor
from pullback.typing import Dims, Shape


def restore_reduced(input: Any, shape: Shape, dim: Dims, keepdim: bool) -> Any:
    """A reduced tensor with its reduced dimensions back, each of size 1, unless nothing else is left."""
    if keepdim or dim is None or dim == () or shape == ():
        return input  # one element goes with every shape
    return F.unsqueezed(input, sorted([d % len(shape) for d in dim]))


def unsqueezed(input: Any, dims: Sequence[int]) -> Any:
    """A tensor with dimensions of size 1 put in at these places of the result, one after the other."""
    for dim in dims:
        input = F.unsqueeze(input, dim)
    return input


@declare(twin="passes")
def mean_grad(grad: Any, shape: Shape, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a mean: `grad`, divided by the count, at every element."""
    axes = range(len(shape)) if dim is None or dim == () or shape == () else dim
    return F.over(F.expand_reduced(grad, shape, dim, keepdim), math.prod([shape[a] for a in axes]))


@declare(twin="passes")
def product_of_others(input: Any, dim: int) -> Any:
    """At each element the product of all others along `dim`; right with any number of zeros."""
    size = input.shape[dim]
    one = F.plus(F.zeros_in_shape(input, (*input.shape[:dim], min(size, 1), *input.shape[dim + 1 :])), 1)
    if size < 2:
        return one
    before = F.cumprod(F.cat([one, F.slice_view(input, dim, 0, size - 1, 1)], dim), dim)
    after = F.cumprod(F.cat([one, F.flip(F.slice_view(input, dim, 1, size, 1), (dim,))], dim), dim)
    return before * F.flip(after, (dim,))


def prod_grad(grad: Any, input: Any, result: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of a product along one dimension."""
    grad = F.to_dtype(grad, input.dtype)
    if input.ndim == 0:
        return grad
    if not keepdim:
        grad = F.unsqueeze(grad, dim)
    if can_divide_by(input, result):
        return grad * F.conj((result if keepdim else F.unsqueeze(result, dim)) / input)
    if input.shape[dim] == 1:
        return grad
    return grad * F.conj(F.product_of_others(input, dim))


def prod_all_grad(grad: Any, input: Any, result: Any) -> Any:
    """The gradient of the product of everything."""
    grad = F.to_dtype(grad, input.dtype)
    if input.ndim == 0:
        return grad
    if can_divide_by(input, result):
        return grad * F.conj(result / input)
    if math.prod(input.shape) == 1:
        return F.reshape(grad, tuple(input.shape))
    if is_zero_without_any(input, result):
        return F.zeros_in_shape(input, tuple(input.shape))
    others = F.product_of_others(F.reshape(input, (-1,)), 0)
    return F.reshape(grad * F.conj(others), tuple(input.shape))


def can_divide_by(input: Any, result: Any) -> bool:
    """Whether a product of some elements without one of them is their product divided by it, on Tensors.

    On arrays `product_of_others` decides it as it goes, and of a batch one example has nothing to say about the others.
    """
    if not isinstance(input, Tensor) or input._bottom is not input or is_meta(input._array):
        return False
    return can_divide(result._array)


def is_zero_without_any(input: Any, result: Any) -> bool:
    """Whether several factors are zero beside one that is nan or infinite: the gradient of each is zero."""
    if not isinstance(input, Tensor):
        return is_nan_beside_zeros(input, result)
    return input._bottom is input and not is_meta(input._array) and is_nan_beside_zeros(input._array, result._array)
