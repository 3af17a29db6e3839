"""Reading elements at positions: views by position, and copies by tensors of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backend.array_module import in_memory_order, is_at_hand, order_of_operands
from pullback.checks import checked
from pullback.checks.elements import position_out_of_range
from pullback.checks.indexing import _check_broadcast, _refuse_empty_dims
from pullback.facts import declare
from pullback.kernels.index_arrays import add_at, check_index, flat_positions, normalized, without_repetition
from pullback.native import by_device, native
from pullback.typing import Array, Arrays, Dim, Shape


@native
@checked
def select(input: Array, dim: Dim, index: int) -> Array:
    """A view at one position of a dimension."""
    if dim == 0:
        return input[index, ...]
    return input[(*[slice(None)] * dim, index, ...)]


@by_device
def select_back(input: Array, shape: Shape, dim: int, index: int) -> Array:
    """The gradient of `select`: zeros but at the position."""
    return place_part(input, shape, dim, index, 0, 0)


@native
@checked
def slice_view(input: Array, dim: Dim, start: int, end: int, step: int) -> Array:
    """A view of part of a dimension; bounds are clamped as Python clamps them."""
    if dim == 0:
        return input[start:end:step]
    return input[(*[slice(None)] * dim, slice(start, end, step))]


@by_device
def slice_back(input: Array, shape: Shape, dim: int, start: int, end: int, step: int) -> Array:
    """The gradient of a slice: zeros around it."""
    return place_part(input, shape, dim, start, end, step)


@native
def place_part(part: Array, shape: Shape, dim: int, start: int, end: int, step: int) -> Array:
    """Zeros, with `part` at the positions of a slice of dimension `dim`, or at `start` alone where the step is 0."""
    result: Array = np.zeros(shape, part.dtype)
    result[_place(dim, start, end, step)] = part
    return result


@native
def add_part(whole: Array, part: Array, dim: int, start: int, end: int, step: int, first: bool) -> Array:
    """Add `part` to the elements of `whole` at such positions, in place.

    The first time, zeros are added to all others, which takes the sign from negative ones.
    """
    if first:
        whole += 0
    whole[_place(dim, start, end, step)] += part
    return whole


def _place(dim: int, start: int, end: int, step: int) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, slice(start, end, step) if step else start, ...)


@native
def index(input: Array, indices: Arrays, dims: Shape) -> Array:
    """The elements at the positions that the broadcast `indices` give for the dimensions `dims`.

    As with NumPy, the indices' dimensions come first unless `dims` are adjacent; unlike there the result lies in memory as
    the other dimensions do, and is row-major where they tell nothing.
    """
    if input.ndim and not (input.size and all(i.size for i in indices)):
        return _index_nothing(input, indices, dims)
    if len(dims) == 1:
        positions = normalized(indices[0], input.shape[dims[0]], dims[0])
        taken = np.take(input, positions, axis=dims[0])
    else:
        taken = np.ascontiguousarray(input[full_index(input.shape, indices, dims)]) if input.ndim else input
    if input.flags.c_contiguous and all(i.flags.c_contiguous for i in indices):
        return taken
    return in_memory_order(taken, _order_of_taken(input, indices, dims, taken.shape))


def _order_of_taken(input: Array, indices: Arrays, dims: Shape, shape: Shape) -> list[int]:
    """The order in memory of what is taken: by the input's other dimensions, then by the indices."""
    first = min(dims) if max(dims) - min(dims) == len(dims) - 1 else 0
    own = [step for dim, step in enumerate(input.strides) if dim not in dims]
    lead = len(shape) - len(own)
    ways = [np.broadcast_to(index, shape[first : first + lead]) for index in indices]
    around = (0,) * first, (0,) * (len(own) - first)
    strides = [(*own[:first], *(0,) * lead, *own[first:])]
    return order_of_operands([*strides, *[(*around[0], *way.strides, *around[1]) for way in ways]], shape)


def _index_nothing(input: Array, indices: Arrays, dims: Shape) -> Array:
    """The empty result of `index`: no element is read, so no position is wrong unless its dimension is empty."""
    _check_broadcast(indices)
    _refuse_empty_dims(input, indices, dims)
    parts: list[Array | slice] = [slice(None)] * (max(dims) + 1)
    for positions, dim in zip(indices, dims, strict=True):
        parts[dim] = np.zeros_like(positions)
    return np.ascontiguousarray(input[tuple(parts)])


def full_index(shape: Shape, indices: Arrays, dims: Shape) -> tuple[Array | slice, ...]:
    """What NumPy calls the index: slices, with arrays of checked positions at `dims`."""
    parts: list[Array | slice] = [slice(None)] * (max(dims) + 1)
    _check_broadcast(indices)
    for positions, dim in zip(indices, dims, strict=True):
        parts[dim] = normalized(positions, shape[dim], dim)
    return tuple(parts)


@native
def index_back(grad: Array, shape: Shape, indices: Arrays, dims: Shape) -> Array:
    """The gradient of `index`: each position gets the sum over its occurrences."""
    result: Array = np.zeros(shape, grad.dtype)
    if not grad.size:
        return result
    add_at(result, full_index(shape, indices, dims), grad)
    return result


@native
@checked
def index_select(input: Array, dim: Dim, index: Array) -> Array:
    """The slices of `input` at the positions `index` along `dim`.

    `index` is a vector (n,) of int64 or int32; the result has the shape of `input` with size n along `dim`. For
    dim=0: y[i] = input[index[i]].
    """
    if input.ndim == 0:
        if not is_at_hand(index):
            check_index(index, 1, 0)
        elif int(index.reshape(())) != 0:
            raise position_out_of_range("index out of range in self")
        return input.copy()
    size = input.shape[dim]
    known = without_repetition(index)
    if not is_at_hand(index):
        check_index(index, size, dim)
    elif index.size and not 0 <= int(known.min()) <= int(known.max()) < size:
        if input.ndim == 1 or (dim == 0 and input.size):
            raise position_out_of_range("index out of range in self")
        wrong = next(int(i) for i in known.reshape(-1) if not 0 <= i < size)
        raise position_out_of_range(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}", RuntimeError)
    return np.take(input, index.reshape(-1), axis=dim)


@native
@checked
def gather(input: Array, dim: Dim, index: Array, sparse_grad: bool = False) -> Array:
    """result[i][j] = input[index[i][j]][j], with the index at `dim`.

    `index` (int64) has as many dimensions as `input` and is no larger than it but along `dim`; the result has the
    shape of `index`. For dim=1: y[i][j] = input[i][index[i][j]].
    """
    return np.take(input.ravel(), _checked_flat(input, dim, index), mode="clip")  # checked: "raise" is slower


def _checked_flat(input: Array, dim: int, index: Array) -> Array:
    if index.size == 0:
        return index.astype(np.int64)
    check_index(index, input.shape[dim] if input.ndim else 1, dim, error=RuntimeError)
    return flat_positions(input.shape, dim, index)


@by_device
def take(input: Array, index: Array) -> Array:
    """The elements at positions counted through all of `input`.

    `index` is an int64 tensor, and the result has its shape. y = input.reshape(-1)[index].
    """
    if not is_at_hand(index):
        check_index(index, input.size, None, negative=True)
    try:
        return input.ravel().take(index)
    except IndexError:
        check_index(index, input.size, None, negative=True)  # says it in PyTorch's words
        raise


def masked_select(input: Array, mask: Array) -> Array:
    """The elements where `mask` is true, in one dimension.

    `input` and `mask` (bool) broadcast; the result is a vector as long as there are true elements: input[mask].
    """
    values, chosen = np.broadcast_arrays(input, mask)
    return values[chosen]


@by_device
def masked_select_back(grad: Array, shape: Shape, mask: Array) -> Array:
    """The gradient of `masked_select`."""
    wide: Array = np.zeros(np.broadcast_shapes(shape, mask.shape), grad.dtype)
    wide.reshape(-1)[np.broadcast_to(mask, wide.shape).reshape(-1)] = grad
    extra = wide.ndim - len(shape)
    axes = (*range(extra), *[extra + d for d, n in enumerate(shape) if n == 1 and wide.shape[extra + d] != 1])
    return wide.sum(axes, dtype=wide.dtype).reshape(shape) if axes else wide


@by_device
def nonzero(input: Array) -> Array:
    """The positions of the elements that are not zero, a row for each."""
    if input.ndim == 0:
        return np.empty((int(input != 0), 0), np.int64)
    return _places(input).T


def _places(input: Array) -> Array:
    """The positions of the elements that are not zero, a row for each dimension.

    NumPy finds them in one dimension in a fifth of the time, divisions included.
    """
    if input.ndim == 1 or input.size < 1024:
        return np.array(input.nonzero(), np.int64)
    flat = input.ravel().nonzero()[0]
    places: Array = np.empty((input.ndim, len(flat)), np.int64)
    for dim in range(input.ndim - 1, 0, -1):
        above = flat // input.shape[dim]
        np.subtract(flat, above * input.shape[dim], out=places[dim])
        flat = above
    places[0] = flat
    return places


@by_device
def nonzero_static(input: Array, *, size: int, fill_value: int = -1) -> Array:
    """The first `size` positions of elements that are not zero, filled up with `fill_value`."""
    found = nonzero(input)[:size]
    result: Array = np.full((size, input.ndim), fill_value, np.int64)
    result[: len(found)] = found
    return result


@by_device
@declare(count_of_values=True)
def positions_of(mask: Array) -> Sequence[Array]:
    """One array of positions per dimension of a boolean mask."""
    if mask.ndim == 0:
        return (np.zeros(int(mask), np.int64),)
    return tuple(_places(mask))
