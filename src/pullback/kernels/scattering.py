"""Writing elements at positions: copies of a tensor with some elements replaced, added to or reduced into."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.backend.device import device_of, move_array
from pullback.backend.dtype import number_as
from pullback.checks import checked
from pullback.checks.elements import position_out_of_range
from pullback.checks.numbers import checked_number
from pullback.kernels.index_arrays import add_at, check_index, flat_positions
from pullback.kernels.indexing import full_index
from pullback.native import by_device, native
from pullback.typing import Array, Arrays, Dim, Scalar, Shape


@by_device
def row_major_copy(input: Array) -> Array:
    """A copy that can be written to, its elements in row-major order."""
    return np.array(input, copy=True, order="C")


@by_device
def copy_in_order(input: Array) -> Array:
    """A copy that can be written to, its elements in the order of the input's."""
    return np.array(input, copy=True, order="K")


@by_device
def index_put(input: Array, indices: Arrays, dims: Shape, values: Array, accumulate: bool = False) -> Array:
    """A copy of `input` with `values` written, or added, at the positions that `indices` give for `dims`."""
    result = copy_in_order(input)
    index_put_into(result, indices, dims, values, accumulate)
    return result


@native
@checked
def index_put_into(target: Array, indices: Arrays, dims: Shape, values: Array, accumulate: bool) -> None:
    """Write or add `values` at positions of `target`, in place."""
    where = full_index(target.shape, indices, dims)
    if accumulate and target.flags.c_contiguous:
        add_at(target, where, values)
    elif accumulate:
        np.add.at(target, where, values)
    else:
        target[where] = values


def _flat(input: Array, dim: int, index: Array) -> Array:
    """The flat positions of a scatter operation."""
    if index.size == 0:
        return index.astype(np.int64)
    check_index(index, input.shape[dim] if input.ndim else 1, dim, error=RuntimeError)
    return flat_positions(input.shape, dim, index)


def _part(src: Array, index: Array) -> Array:
    """The part of `src` that `index` covers."""
    if src.shape == index.shape or index.size == 0:
        return src
    if src.ndim != index.ndim:
        return src.reshape(-1)[: index.size].reshape(index.shape)
    return src[tuple([slice(n) for n in index.shape])]


@native
@checked
def scatter(input: Array, dim: Dim, index: Array, src: Array) -> Array:
    """A copy of `input` with result[index[i][j]][j] = src[i][j], with the index at `dim`."""
    places = _flat(input, dim, index)
    result = row_major_copy(input)
    if index.size:
        result.reshape(-1)[places] = _part(src, index)
    return result


@by_device
def scatter_value(input: Array, dim: Dim, index: Array, value: Scalar) -> Array:
    """A copy of `input` with a number written at positions."""
    places = _flat(input, dim, index)
    result = row_major_copy(input)
    result.reshape(-1)[places] = checked_number(value, input.dtype)
    return result


@native
@checked
def scatter_add(input: Array, dim: Dim, index: Array, src: Array) -> Array:
    """A copy of `input` with `src` added at positions; repeated ones add up.

    `index` says for each element of `src` at which place of `dim` it is added; the other places are its own. For `dim`
    = 0: y[index[i, j], j] += src[i, j]. `index` is not larger than `src` in any dimension, nor than `input` in any but
    `dim`.
    """
    places = _flat(input, dim, index)
    result = row_major_copy(input)
    if index.size:
        add_at(result.reshape(-1), (places.reshape(-1),), _part(src, index).reshape(-1))
    return result


@by_device
def pad_to(input: Array, shape: Shape) -> Array:
    """`input` in the low corner of zeros of a larger shape."""
    if input.shape == shape:
        return input
    result: Array = np.zeros(shape, input.dtype)
    if input.size:  # nothing may have any number of dimensions, and a number stands for one of a vector
        result[tuple([slice(n) for n in input.shape or (1,) * len(shape)])] = input
    return result


_IDENTITIES: dict[str, Any] = {"sum": 0, "mean": 0, "prod": 1}
_REDUCERS: dict[str, Any] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _identity(reduce: str, dtype: Any) -> Any:
    if reduce in _IDENTITIES:
        return _IDENTITIES[reduce]
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
    return -np.inf if reduce == "amax" else np.inf


@by_device
def reduce_at(target: Array, places: Array, values: Array, reduce: str, include_self: bool) -> None:
    """Reduce `values` into flat `target` at flat `places`."""
    if not include_self:
        target[places] = _identity(reduce, target.dtype)
    if reduce in ("sum", "mean"):
        add_at(target, (places,), values)
    else:
        _REDUCERS[reduce].at(target, places, values)
    if reduce == "mean":
        counts = np.bincount(places, minlength=target.size) + (1 if include_self else 0)
        counts = np.maximum(counts, 1)
        target[...] = target // counts if target.dtype.kind in "iu" else target / counts.astype(target.real.dtype)


@by_device
@checked
def scatter_reduce(
    input: Array, dim: Dim, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """A copy of `input` with `src` reduced into it at positions.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` what was there before does not count.
    For dim = 0: y[index[i, j], j] = reduction of all src[i, j] that go there.

    >>> import pullback
    >>> pullback.scatter_reduce(pullback.zeros(2), 0, pullback.tensor([0, 1, 1]), pullback.tensor([1.0, 2.0, 3.0]), "sum")
    tensor([1., 5.])
    """
    places = _flat(input, dim, index)
    result = row_major_copy(input)
    if index.size:
        reduce_at(result.reshape(-1), places.reshape(-1), _part(src, index).reshape(-1), reduce, include_self)
    return result


@native
@checked
def index_add(input: Array, dim: Dim, index: Array, source: Array, *, alpha: Scalar = 1) -> Array:
    """A copy of `input` with slices of `source` added at positions of a dimension.

    `index` is (n,), `source` has the tensor's shape with size n along `dim`. For dim=0: y = input.clone(), then
    y[index[i]] += alpha * source[i].
    """
    result = row_major_copy(input)
    if input.ndim == 1:
        try:
            check_index(index, input.shape[0], 0)
        except IndexError as error:
            raise position_out_of_range(f"index out of range in self: {error}") from None
    elif input.size or not input.ndim:  # PyTorch looks at no position where there are no slices to add to
        check_index(index, input.shape[dim] if input.ndim else 1, dim, error=RuntimeError)
    if alpha != 1:
        source = source * number_as(alpha, input.dtype)
    if input.ndim == 0:
        return result + source.sum(dtype=source.dtype)
    if result.size:
        add_at(result, (*[slice(None)] * dim, index.reshape(-1)), source)
    return result


@by_device
def index_copy(input: Array, dim: Dim, index: Array, source: Array) -> Array:
    """A copy of `input` with slices of `source` written at positions of a dimension.

    `index` is a vector of places along `dim`, and `source` has as many slices there; its other sizes are those of
    `input`. For `dim` = 0: y[index[i]] = source[i].
    """
    try:
        if source.size:
            check_index(index, input.shape[dim] if input.ndim else 1, dim)
    except IndexError as error:
        raise position_out_of_range(f"index_copy_(): {error}") from None
    result = row_major_copy(input)
    if source.size and input.ndim == 0:
        result[...] = source.reshape(-1)[-1]
    elif source.size:
        result[(*[slice(None)] * dim, index.reshape(-1))] = source
    return result


@by_device
def index_fill(input: Array, dim: Dim, index: Array, value: Scalar) -> Array:
    """A copy of `input` with a number at positions of a dimension."""
    return index_fill_tensor(input, dim, index, np.asarray(checked_number(value, input.dtype)))


@by_device
def index_fill_tensor(input: Array, dim: Dim, index: Array, value: Array) -> Array:
    """A copy of `input` with the value of a 0-dim tensor at positions of a dimension."""
    if 0 in input.shape[:dim] + input.shape[dim + 1 :]:  # PyTorch looks at no position where slices are empty
        return copy_in_order(input)
    check_index(index, input.shape[dim] if input.ndim else 1, dim, negative=True)
    result = copy_in_order(input)
    if input.ndim == 0:
        return np.full((), value, input.dtype) if index.size else result
    result[(*[slice(None)] * dim, index.reshape(-1))] = np.asarray(value).astype(input.dtype)
    return result


@by_device
@checked
def index_reduce(
    input: Array, dim: Dim, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """A copy of `input` with slices of `source` reduced into it at positions of a dimension."""
    size = input.shape[dim] if input.ndim else 1
    if not is_at_hand(index):
        check_index(index, size, dim)
    elif index.size and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise position_out_of_range("index out of range in self")
    if index.size == 0 or source.size == 0:
        return row_major_copy(input)
    return scatter_reduce(
        input, dim, expand_index(index, source.shape, dim).astype(np.int64), source, reduce, include_self=include_self
    )


@by_device
def expand_index(index: Array, shape: Shape, dim: int) -> Array:
    """A vector of positions along `dim`, repeated over the other dimensions of `shape`."""
    if not shape:
        return index.reshape(())
    return np.broadcast_to(index.reshape((-1,) + (1,) * (len(shape) - 1 - dim)), shape)


@by_device
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """A copy of `input` with `source` written, or added, at positions counted through all of it."""
    check_index(index, input.size, None, negative=True)
    result = row_major_copy(input)
    flat, places, values = result.reshape(-1), index.reshape(-1), source.reshape(-1)
    if accumulate:
        add_at(flat, (places,), values)
    else:
        flat[places] = values
    return result


@by_device
def take_back(grad: Array, shape: Shape, index: Array) -> Array:
    """The gradient of `take`: zeros with `grad` added at positions that `take` has checked."""
    result: Array = np.zeros(shape, grad.dtype)
    add_at(result.reshape(-1), (index.reshape(-1),), grad.reshape(-1))
    return result


@by_device
def ones_in_shape_of(input: Array) -> Array:
    """Ones in the shape and dtype of `input`."""
    return np.ones(input.shape, input.dtype)


def is_zero(input: Array) -> Array:
    """Where the elements are zero."""
    return input == 0


def is_false(input: Array) -> Array:
    """Where a mask is false."""
    return np.logical_not(input)


def ones_where_equal(input: Array, other: Array) -> Array:
    """One where the elements are equal, else zero, in the dtype of `input`."""
    return (input == other).astype(input.dtype)


def distinct_positions(index: Array, shape: Shape, dim: int) -> Array:
    """The positions along `dim`, each once, negative ones counted from the front."""
    return np.unique(positive_index(index, shape, dim))


def positive_index(index: Array, shape: Shape, dim: int) -> Array:
    """Positions along `dim` with negative ones counted from the front."""
    return np.where(index < 0, index + (shape[dim] if shape else 1), index)


def as_positions(positions: Array, like: Array) -> Array:
    """Positions, on the device of `like`, where a formula on tensors has a tensor of them."""
    return positions if isinstance(like, np.ndarray) else move_array(positions, device_of(like))


def sharing_counts(like: Array, positions: Array) -> Array | None:
    """How many of the positions equal each one, in the dtype of `like`; None if they all differ."""
    counts = np.bincount(positions, minlength=1)
    if positions.size == 0 or counts.max() <= 1:
        return None
    return as_positions(counts[positions].astype(like.dtype), like)


def once_with_zeros(input: Array, zeros: Array, name: str) -> Array:
    """`input` itself. As a gradient of Tensors it cannot be differentiated where `zeros` counts several."""
    return input
