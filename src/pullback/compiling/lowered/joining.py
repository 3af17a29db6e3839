"""Joining, parting, and gradients that are put in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.compiling.lowered.lowering_table import axes_of, floating, identity, lowering
from pullback.compiling.lowering import Lowering, NotLowered, Symbol, apply, as_expression, choose, drop_axes
from pullback.compiling.steps import Place, row_major
from pullback.kernels.joining import split_sizes_of


def _joined(lower: Lowering, parts: list[Place | None], sizes: list[int], dim: int, out: Place) -> Place:
    """Parts one after another along a dimension; zeros for None."""
    begin = 0
    for part, size in zip(parts, sizes, strict=True):
        shape = (*out.shape[:dim], size, *out.shape[dim + 1 :])
        window = out.storage.piece(out.windowed(shape, out.strides, begin * out.strides[dim]))
        if part is None:
            lower.map(lambda: Symbol(as_expression(0.0)), out=window)
        else:
            lower.map(identity, part, out=window)
        begin += size
    return out


@lowering
def cat(lower: Lowering, tensors: Any, dim: int = 0) -> Place:
    parts = list(tensors)
    if len({part.dtype for part in parts}) > 1 or len({len(part.shape) for part in parts}) > 1:
        raise NotLowered("several dtypes or empty parts")
    if any(part.strides != row_major(part.shape, part.dtype.itemsize) and len(part.shape) > 3 for part in parts):
        raise NotLowered("channels last")
    dim %= len(parts[0].shape)
    extent = int(np.sum([part.shape[dim] for part in parts]))
    shape = (*parts[0].shape[:dim], extent, *parts[0].shape[dim + 1 :])
    filled = [part for part in parts if part.size]
    return _joined(lower, list(filled), [part.shape[dim] for part in filled], dim, lower.new(shape, parts[0].dtype))


@lowering
def stack(lower: Lowering, tensors: Any, dim: int = 0) -> Place:
    if len({part.dtype for part in tensors}) > 1:
        raise NotLowered("several dtypes")
    dim %= len(tensors[0].shape) + 1
    parts = [part.with_ones([dim]) for part in tensors]
    shape = (*parts[0].shape[:dim], len(parts), *parts[0].shape[dim + 1 :])
    return _joined(lower, list(parts), [1] * len(parts), dim, lower.new(shape, parts[0].dtype))


def _slices(input: Place, dim: int, sizes: list[int]) -> tuple[Place, ...]:
    """Windows of these sizes along a dimension."""
    made, begin = [], 0
    for size in sizes:
        shape = (*input.shape[:dim], size, *input.shape[dim + 1 :])
        made.append(input.windowed(shape, input.strides, begin * input.strides[dim]))
        begin += size
    return tuple(made)


@lowering
def split(lower: Lowering, input: Place, split_size: int, dim: int = 0) -> tuple[Place, ...]:
    return _slices(input, dim % len(input.shape), list(split_sizes_of(input.shape[dim], split_size)))


@lowering
def split_with_sizes(lower: Lowering, input: Place, split_sizes: Any, dim: int = 0) -> tuple[Place, ...]:
    return _slices(input, dim % len(input.shape), list(split_sizes))


@lowering
def unbind(lower: Lowering, input: Place, dim: int = 0) -> tuple[Place, ...]:
    dim %= len(input.shape)
    return tuple([drop_axes(part, (dim,)) for part in _slices(input, dim, [1] * input.shape[dim])])


@lowering
def split_with_sizes_back(lower: Lowering, grads: Any, shape: Any, dtype: Any, split_sizes: Any, dim: int) -> Place:
    floating(*grads)
    return _joined(lower, list(grads), list(split_sizes), dim % len(shape), lower.new(tuple(shape), dtype))


@lowering
def split_back(lower: Lowering, grads: Any, shape: Any, dtype: Any, split_size: int, dim: int) -> Place:
    made: Place = split_with_sizes_back(lower, grads, shape, dtype, split_sizes_of(shape[dim], split_size), dim)
    return made


@lowering
def unbind_back(lower: Lowering, grads: Any, shape: Any, dtype: Any, dim: int) -> Place:
    dim %= len(shape)
    parts = [None if grad is None else grad.with_ones([dim]) for grad in grads]
    made: Place = split_with_sizes_back(lower, parts, shape, dtype, [1] * shape[dim], dim)
    return made


@lowering
def cat_back(lower: Lowering, grad: Place, shapes: Any, dtypes: Any, dim: int) -> tuple[Place, ...]:
    if any(dtype != grad.dtype for dtype in dtypes) or any(tuple(shape) == (0,) for shape in shapes):
        raise NotLowered("several dtypes or empty parts")
    dim %= len(grad.shape)
    return _slices(grad, dim, [shape[dim] for shape in shapes])


@lowering
def linalg_cross(lower: Lowering, input: Place, other: Place, *, dim: int = -1) -> Place:
    floating(input, other)
    if input.shape != other.shape:
        raise NotLowered("broadcasting")
    dim %= len(input.shape)
    a, b = _slices(input, dim, [1, 1, 1]), _slices(other, dim, [1, 1, 1])
    out = lower.new(input.shape, input.dtype)
    for n, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        window = out.storage.piece(_slices(out, dim, [1, 1, 1])[n])
        lower.map(lambda p, q, r, s: p * q - r * s, a[i], b[j], a[j], b[i], out=window)
    return out


@lowering
def logsumexp(lower: Lowering, input: Place, dim: Any, keepdim: bool = False) -> Place:
    floating(input)
    axes = axes_of(input, dim)
    if not input.size or not input.shape:
        raise NotLowered("no rows")
    top = lower.map(
        lambda t: choose(apply("abs", t).compare("==", math.inf), 0.0, t), lower.reduce("maximum", input, axes)
    )
    total = lower.reduce("sum", lower.map(lambda x, t: apply("exp", x - t), input, top), axes)
    made = lower.map(lambda s, t: apply("log", s) + t, total, top)
    return made if keepdim else drop_axes(made, axes)


@lowering
def copy(lower: Lowering, input: Place, src: Place) -> Place:
    if input.dtype != src.dtype:
        raise NotLowered("a cast")
    return lower.map(identity, src, out=lower.new(input.shape, input.dtype))
