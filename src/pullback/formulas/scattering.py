"""Gradients of writing at positions."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as F
from pullback import kernels
from pullback.backend.array_module import contiguous_strides
from pullback.facts import declare
from pullback.graph.basic_nodes import DelayedError
from pullback.kernels.index_arrays import strided_positions
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.typing import Scalar, Shape


def padded_to(grad: Any, shape: Shape) -> Any:
    """The gradient of what was read as a part only, with zeros for the rest."""
    return grad if tuple(grad.shape) == tuple(shape) else F.pad_to(grad, shape)


def low_corner(grad: Any, shape: Shape) -> Any:
    """The gradient of `pad_to`: what was there before padding."""
    for dim, size in enumerate(shape):
        if grad.shape[dim] != size:
            grad = F.slice_view(grad, dim, 0, size, 1)
    return grad


def index_add_back_source(grad: Any, dim: int, index: Any, shape: Shape, alpha: Scalar) -> Any:
    """The gradient of `index_add` for its source."""
    if shape:
        part = F.expand(F.index_select(grad, dim, index), shape)
    else:
        part = F.index_select(grad, dim, F.reshape(index, ()))
    return part if alpha == 1 else part * alpha


@declare(twin="passes")
def sum_where(grad: Any, mask: Any) -> Any:
    """The sum of the gradients where `mask` is true; on arrays the kernel of that name serves."""
    return F.sum_all(F.masked_select(grad, mask))


def masked_keep(grad: Any, mask: Any) -> Any:
    """`grad` where `mask` is true, zero elsewhere."""
    return F.masked_fill(grad, F.is_false(mask), 0)


def masked_scatter_back(grad: Any, mask: Any, shape: Shape) -> Any:
    """The gradient of `masked_scatter` for its source: the elements taken, zeros for those left over."""
    taken = F.masked_select(grad, mask)
    return F.reshape(F.padded_to(taken, (math.prod(shape),)), shape)


def scatter_reduce_back_input(
    grad: Any, input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> Any:
    """The gradient of `scatter_reduce` for the tensor that is reduced into."""
    if reduce == "sum":
        share = grad
    elif reduce == "prod":
        nonzero = F.masked_fill(input, F.is_zero(input), 1)
        share = grad * F.scatter_reduce(nonzero, dim, index, src, reduce, include_self=include_self) / nonzero
    elif reduce == "mean":
        share = grad / scatter_counts(grad, dim, index, src, include_self)
    else:
        chosen = F.ones_where_equal(input, result)
        share = chosen * scatter_share(grad, dim, index, src, chosen, result)
    return share if include_self else F.scatter_value(share, dim, index, 0)


def scatter_reduce_back_source(
    grad: Any, input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any,
    name: str = "scatter_reduce",
) -> Any:  # fmt: skip
    """The gradient of `scatter_reduce` for what is reduced."""
    part = low_corner(src, index.shape)
    if reduce == "sum":
        share = F.gather(grad, dim, index)
    elif reduce == "prod":
        share = scatter_prod_back_source(grad, input, dim, index, part, include_self, result, name)
    elif reduce == "mean":
        counts = scatter_counts(grad, dim, index, part, include_self)
        share = F.gather(grad, dim, index) / F.gather(counts, dim, index)
    else:
        chosen = F.ones_where_equal(input, result)
        winners = F.ones_where_equal(part, F.gather(result, dim, index))
        share = winners * F.gather(scatter_share(grad, dim, index, part, chosen, result), dim, index)
    return F.padded_to(share, src.shape)


def scatter_counts(grad: Any, dim: int, index: Any, src: Any, include_self: bool) -> Any:
    """How many values each element of the result of a mean was made of."""
    ones = F.ones_in_shape_of(low_corner(src, index.shape))
    start = F.ones_in_shape_of(grad) if include_self else F.zeros_in_shape_of(grad)
    counts = F.scatter_add(start, dim, index, ones)
    return F.masked_fill(counts, F.is_zero(counts), 1)


def scatter_share(grad: Any, dim: int, index: Any, src: Any, chosen: Any, result: Any) -> Any:
    """The gradient of a maximum or minimum, shared evenly among the elements that attain it."""
    winners = F.ones_where_equal(low_corner(src, index.shape), F.gather(result, dim, index))
    return grad / F.scatter_add(chosen, dim, index, winners)


def scatter_prod_back_source(
    grad: Any, input: Any, dim: int, index: Any, src: Any, include_self: bool, result: Any, name: str
) -> Any:
    """The gradient of a product for its factors; a factor that is the only zero gets the product of the others."""
    is_zero = F.is_zero(src)
    zeros = F.gather(F.scatter_add(F.zeros_in_shape_of(grad), dim, index, F.to_dtype(is_zero, grad.dtype)), dim, index)
    alone = F.logical_and(is_zero, F.eq(zeros, 1))
    others = F.scatter_reduce(input, dim, index, F.masked_fill(src, alone, 1), "prod", include_self=include_self)
    quotient = F.gather(grad * result, dim, index) / F.masked_fill(src, is_zero, 1)
    share = F.where(alone, F.gather(grad * others, dim, index), quotient)
    return F.once_with_zeros(share, zeros, name)


@declare(twin="recorded")
def once_with_zeros(share: Any, zeros: Any, name: str) -> Any:
    """The gradient of factors; several zeros at one place hide the second derivative, so asking for it is refused."""
    if type(share) is not Tensor or not share._requires_grad or not (zeros._array > 1).any():
        return share
    source = "src" if name == "scatter_reduce" else "source"
    refused: Any = DelayedError(
        f"{name}(): Double backward is unsupported for {source} when >1 zeros in {source} are scattered to the same "
        "position in self. Each factor's gradient is zero there, and so are all products of pairs that could be "
        "differentiated again.",
        1,
    )(share)
    return refused


def index_reduce_back_input(
    grad: Any, input: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> Any:
    """The gradient of `index_reduce` for the tensor that is reduced into."""
    places = F.expand_index(index, source.shape, dim)
    return scatter_reduce_back_input(grad, input, dim, places, source, reduce, include_self, result)


def index_reduce_back_source(
    grad: Any, input: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> Any:
    """The gradient of `index_reduce` for what is reduced."""
    places = F.expand_index(index, source.shape, dim)
    return scatter_reduce_back_source(grad, input, dim, places, source, reduce, include_self, result, "index_reduce")


def strided_part(grad: Any, size: Shape, stride: Shape, storage_offset: int | None) -> Any:
    """The elements of row-major `grad` in a strided window, as a copy."""
    places = F.as_positions(strided_positions(tuple(size), tuple(stride), storage_offset or 0), grad)
    return F.reshape(F.take(grad, places), size)


def as_strided_back(
    grad: Any,
    shape: Shape,
    input_stride: Shape,
    input_offset: int,
    size: Shape,
    stride: Shape,
    storage_offset: int | None,
    examples: int = 0,
) -> Any:
    """The gradient of `as_strided`: summed into the storage, then read with the geometry of the input.

    Elements of the input that share one place of the storage share its gradient evenly. Each example of a batch (the first
    `examples` dimensions) has a storage of its own here: what it reads of another's memory is not part of it.
    """
    start = input_offset if storage_offset is None else storage_offset
    window = tuple(size)[examples:], tuple(stride)[examples:]
    whole = tuple(shape)[examples:], tuple(input_stride or contiguous_strides(shape))[examples:]
    written, read = strided_positions(*window, start), strided_positions(*whole, input_offset)
    length = 1 + max([int(p.max()) for p in (written, read) if p.size], default=0)
    count = math.prod(tuple(shape)[:examples])
    if examples:
        written = strided_positions((count, *window[0]), (length, *window[1]), start)
        read = strided_positions((count, *whole[0]), (length, *whole[1]), input_offset)
    flat = F.zeros_in_shape(grad, (count * length,))
    flat = F.put(flat, F.as_positions(written, grad), F.reshape(grad, (-1,)), True)
    values = F.take(flat, F.as_positions(read, grad))
    sharing = F.sharing_counts(grad, read)
    if sharing is not None:
        values = values / sharing
    return F.reshape(values, shape)


def unfold_back(grad: Any, shape: Shape, dimension: int, size: int, step: int) -> Any:
    """The gradient of `unfold`: windows summed where they overlap."""
    if not shape:
        return F.reshape(grad, ())
    if not size:
        return F.zeros_in_shape(grad, shape)
    ndim = len(shape)
    others = [d for d in range(ndim) if d != dimension]
    summed = F.overlap_add(F.permute(grad, (*others, dimension, ndim)), step)
    uncovered = shape[dimension] - summed.shape[-1]
    if uncovered:
        summed = F.constant_pad_nd(summed, (0, uncovered), 0)
    return F.permute(summed, (*range(dimension), ndim - 1, *range(dimension, ndim - 1)))


@declare(twin="kernel")
def as_positions(positions: Any, like: Any) -> Any:
    """An array of positions as a tensor, on the device of another."""
    return new_tensor(kernels.as_positions(positions, like._bottom._array))


@declare(twin="kernel")
def sharing_counts(like: Any, positions: Any) -> Any:
    """How many of the positions equal each one, as a tensor; None if they all differ."""
    counts = kernels.sharing_counts(like._array, positions)
    return None if counts is None else new_tensor(counts)
