"""Sums, means, extrema and the gradients that spread them again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.compiling.lowered.casts import to_dtype
from pullback.compiling.lowered.lowering_table import axes_of, copied, floating, lowering, reshaped
from pullback.compiling.lowering import Lowering, NotLowered, drop_axes
from pullback.compiling.steps import Place


@lowering
def sum(lower: Lowering, input: Place, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Place:
    floating(input)
    if dtype is not None and np.dtype(dtype) != input.dtype:
        raise NotLowered("a sum in another dtype")
    return _fresh(lower, input, lower.reduce("sum", input, axes_of(input, dim)), axes_of(input, dim), keepdim)


def _fresh(lower: Lowering, input: Place, reduced: Place, axes: tuple[int, ...], keepdim: bool) -> Place:
    """A reduced place, copied where nothing was reduced."""
    if reduced is input:
        reduced = copied(lower, input)
    return reduced if keepdim else drop_axes(reduced, axes)


@lowering
def sum_all(lower: Lowering, input: Place, *, dtype: Any = None) -> Place:
    made: Place = sum(lower, input, dtype=dtype)
    return made


@lowering
def mean(lower: Lowering, input: Place, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Place:
    axes = axes_of(input, dim)
    total = sum(lower, input, dim, True, dtype=dtype)
    count = math.prod([input.shape[axis] for axis in axes])
    made = lower.map(lambda x: x / count, total)
    return made if keepdim else drop_axes(made, axes)


@lowering
def mean_all(lower: Lowering, input: Place, *, dtype: Any = None) -> Place:
    made: Place = mean(lower, input, dtype=dtype)
    return made


@lowering
def sum_to(lower: Lowering, grad: Place, shape: tuple[int, ...]) -> Place:
    floating(grad)
    extra = len(grad.shape) - len(shape)
    axes = [*range(extra), *[extra + i for i, size in enumerate(shape) if size == 1 and grad.shape[extra + i] != 1]]
    return reshaped(lower, lower.reduce("sum", grad, tuple(axes)) if axes else grad, tuple(shape))


@lowering
def sum_to_like(lower: Lowering, grad: Place, shape: tuple[int, ...], dtype: Any) -> Place:
    summed = sum_to(lower, grad, shape)
    return summed if summed.dtype == dtype else to_dtype(lower, summed, dtype)


@lowering
def linear_grad_bias(lower: Lowering, grad: Place) -> Place:
    floating(grad)
    axes = tuple(range(len(grad.shape) - 1))
    return drop_axes(lower.reduce("sum", grad, axes), axes) if axes else grad


@lowering
def expand_reduced(lower: Lowering, grad: Place, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Place:
    if tuple(shape) == ():
        return grad
    if dim is None or dim == ():
        grad = grad.windowed((1,) * len(shape), (0,) * len(shape))
    elif not keepdim:
        grad = grad.with_ones([d % len(shape) for d in dim])
    return grad.broadcast(tuple(shape))


@lowering
def mean_grad(lower: Lowering, grad: Place, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Place:
    floating(grad)
    axes = range(len(shape)) if dim is None or dim == () or tuple(shape) == () else dim
    count = math.prod([shape[a] for a in axes])
    return expand_reduced(lower, lower.map(lambda x: x / count, grad), shape, dim, keepdim)


@lowering
def amax(lower: Lowering, input: Place, dim: Any = (), keepdim: bool = False) -> Place:
    floating(input)
    axes = axes_of(input, dim)
    return _fresh(lower, input, lower.reduce("maximum", input, axes), axes, keepdim)


@lowering
def amin(lower: Lowering, input: Place, dim: Any = (), keepdim: bool = False) -> Place:
    floating(input)
    axes = axes_of(input, dim)
    return _fresh(lower, input, lower.reduce("minimum", input, axes), axes, keepdim)
