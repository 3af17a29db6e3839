"""Sums, means, products and counts over dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backend.array_module import cast_array, is_at_hand
from pullback.backend.dtype import is_float_or_complex
from pullback.checks import checked
from pullback.checks.elements import value_out_of_range
from pullback.kernels.accumulation import (
    accurate_sum,
    add_up,
    contiguous,
    is_short,
    multiply_up,
    reduced_axes,
    reduced_count,
    widened,
)
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Dims, DType, Shape

_SMALL = 4096


@native
def sum_all(input: Array, *, dtype: DType | None = None) -> Array:
    """Sum everything."""
    if dtype is None and is_short(input):
        return add_up(input, None)
    return sum(input, None, False, dtype=dtype)


@native
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Array:
    """Sum over `dim`, or over everything."""
    return accurate_sum(_in_dtype(input, dtype), reduced_axes(input, dim), keepdim)


def _in_dtype(input: Array, dtype: DType | None) -> Array:
    """The elements in the dtype to add or multiply in: int64 for integers if none is asked for."""
    if dtype is None:
        if is_float_or_complex(input.dtype):
            return input
        dtype = np.dtype(np.int64)
    return cast_array(input, dtype)


@by_device
def expand_reduced(grad: Array, shape: Shape, dim: Dims, keepdim: bool) -> Array:
    """The gradient of a sum: `grad` seen at every element that was summed (a read-only view unless it is small).

    NumPy takes three microseconds to broadcast, half of one to fill a small array.
    """
    if shape == ():
        return grad
    if dim is None or dim == ():
        if math.prod(shape) <= _SMALL:
            filled = np.empty(shape, grad.dtype)
            filled[...] = grad if grad.ndim == 0 else grad.reshape(())
            return filled
        return np.broadcast_to(grad.reshape((1,) * len(shape)), shape)
    if not keepdim:
        grad = grad.reshape([1 if i in dim else n for i, n in enumerate(shape)])
    return np.broadcast_to(grad, shape)


@native
def mean_all(input: Array, *, dtype: DType | None = None) -> Array:
    """The mean of everything."""
    if dtype is None and is_short(input):
        return add_up(input, None) / input.size
    return mean(input, None, False, dtype=dtype)


@native
@checked
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Array:
    """The mean over `dim`, or over everything."""
    wanted = input.dtype if dtype is None else dtype
    values = widened(cast_array(input, wanted))
    total = accurate_sum(values, reduced_axes(input, dim), keepdim)
    return cast_array(np.true_divide(total, reduced_count(input, dim), dtype=values.dtype), wanted)


@by_device
def mean_grad(grad: Array, shape: Shape, dim: Dims, keepdim: bool) -> Array:
    """The gradient of a mean: `grad`, divided by the count, at every element (a read-only view)."""
    axes = range(len(shape)) if dim is None or dim == () or shape == () else dim
    count = math.prod([shape[a] for a in axes])
    return expand_reduced(np.true_divide(grad, count, dtype=grad.dtype), shape, dim, keepdim)


@native
def prod_all(input: Array, *, dtype: DType | None = None) -> Array:
    """The product of everything."""
    values = _in_dtype(input, dtype)
    return cast_array(multiply_up(widened(values), None), values.dtype)


@native
def prod(input: Array, dim: Dim, keepdim: bool = False, *, dtype: DType | None = None) -> Array:
    """The product over one dimension."""
    values = _in_dtype(input, dtype)
    if input.ndim == 0:
        return np.array(values)
    return cast_array(contiguous(multiply_up(widened(values), dim, keepdim)), values.dtype)


def can_divide(product: Array) -> bool:
    """Whether products divided by a factor are the products of the others: they are numbers other than zero."""
    return is_at_hand(product) and bool(np.all(np.isfinite(product) & (product != 0)))


def is_nan_beside_zeros(input: Array, product: Array) -> bool:
    """Whether the product of everything is nan though several factors are zero."""
    return is_at_hand(product) and bool(np.isnan(product)) and int(np.count_nonzero(input)) + 1 < input.size


@by_device
def product_of_others(input: Array, dim: Dim) -> Array:
    """At each element the product of all others along `dim`; right with any number of zeros.

    Many numbers are divided in their own precision, which takes half as long, where the product is a normal one of it.
    """
    if input.size > _SMALL and input.dtype.char in "fd":
        product = prod(input, dim, True)
        if can_divide(product) and bool(np.all(abs(product) >= np.finfo(input.dtype).tiny)):
            return product / input
    return wide_product_of_others(input, dim)


@native
def wide_product_of_others(input: Array, dim: Dim) -> Array:
    """The product of all others, computed in the widest numbers of the kind."""
    product = multiply_up(widened(input), dim, True)
    if can_divide(product):
        return cast_array(product / input, input.dtype)
    ones = np.ones_like(input[(slice(None),) * dim + (slice(0, 1),)])
    lead = (slice(None),) * dim
    before = np.multiply.accumulate(np.concatenate((ones, input[(*lead, slice(0, -1))]), dim), dim)
    reverse = (*lead, slice(None, None, -1))
    after = np.multiply.accumulate(np.concatenate((ones, input[reverse][(*lead, slice(0, -1))]), dim), dim)[reverse]
    return before * after


@native
@checked
def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Array:
    """The sum that counts NaN as zero."""
    if is_float_or_complex(input.dtype):  # before the conversion: an integer cannot be NaN
        input = np.where(np.isnan(input), np.zeros((), input.dtype), input)
    values = _in_dtype(input, dtype)
    return accurate_sum(values, reduced_axes(input, dim), keepdim)


def not_nan(input: Array) -> Array:
    """One where there is a number, zero where there is none, in the input's dtype."""
    return (~np.isnan(input)).astype(input.dtype)


def count_not_nan(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """How many elements are numbers, in the input's dtype."""
    count = add_up(~np.isnan(input), reduced_axes(input, dim), keepdim)
    return count.astype(input.dtype)


@native
def count_nonzero(input: Array, dim: Dims = None) -> Array:
    """How many elements are not zero.

    `dim` is a dimension or several, None for all; the result, int64, lacks them.
    """
    return np.asarray(np.count_nonzero(input, axis=reduced_axes(input, dim)), np.int64, order="C")


@native
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether one element is true.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`). Numbers
    other than zero are true, nan too; of no elements it is false.
    """
    return _truth(np.any, input, dim, keepdim)


@native
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether all elements are true.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`). Numbers
    other than zero are true, nan too; of no elements it is true.
    """
    return _truth(np.all, input, dim, keepdim)


@by_device
def check_all(input: Array) -> None:
    """Raise ValueError unless all elements are true."""
    if not np.all(input):
        raise value_out_of_range("not all values are true", ValueError)


def _truth(function: Any, input: Array, dim: Dims, keepdim: bool) -> Array:
    axes = dim if dim == () else reduced_axes(input, dim)  # an empty list reduces nothing here, unlike in a sum
    values = input if input.dtype == bool else input != 0
    result = contiguous(function(values, axis=axes, keepdims=keepdim))
    return result.astype(input.dtype) if input.dtype == np.uint8 else result
