"""The largest and the smallest, and where they are. NaN wins over every number."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.backend.dtype import is_float_or_complex
from pullback.backend.halves import rounded
from pullback.checks import checked
from pullback.kernels.accumulation import add_up, contiguous, largest_along, reduced_axes, widened
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Dims

_MAXIMUM: Any = np.maximum
_MINIMUM: Any = np.minimum


@native
@checked
def max_all(input: Array) -> Array:
    """The largest element."""
    return _MAXIMUM.reduce(input, axis=None)


@native
@checked
def min_all(input: Array) -> Array:
    """The smallest element."""
    return _MINIMUM.reduce(input, axis=None)


@native
@checked
def max_dim(input: Array, dim: Dim, keepdim: bool = False) -> tuple[Array, Array]:
    """The largest element along `dim`, and its first index."""
    return _select(np.argmax, input, dim, keepdim)


@native
@checked
def min_dim(input: Array, dim: Dim, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest element along `dim`, and its first index."""
    return _select(np.argmin, input, dim, keepdim)


def _select(function: Any, input: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if input.ndim == 0:
        return np.array(input), np.zeros((), np.int64)
    if input.dtype.char == "e":  # NumPy compares float16 one by one
        values, indices = _select(function, widened(input), dim, keepdim)
        return rounded(values, input.dtype), indices
    indices = _first(function, input, dim)
    if dim == input.ndim - 1 and input.flags.c_contiguous:
        starts = np.arange(0, input.size, input.shape[-1])
        values = input.reshape(-1)[starts + indices.reshape(-1)].reshape(indices.shape)
    else:
        values = np.squeeze(np.take_along_axis(input, np.expand_dims(indices, dim), dim), dim)
    kept = (*input.shape[:dim], 1, *input.shape[dim + 1 :])
    return (values.reshape(kept), indices.reshape(kept)) if keepdim else (values, indices)


def _first(function: Any, input: Array, axis: int | None) -> Any:
    """The first index of the extremum; a NaN is one, also in dtypes that NumPy does not know to have it."""
    if input.dtype.itemsize == 2 and is_float_or_complex(input.dtype):
        input = widened(input)
    return np.asarray(function(input, axis=axis), np.int64)


@native
@checked
def amax(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """The largest element over `dim`, or over everything.

    `dim` is a dimension or several; the result lacks them, or has them with size 1 (`keepdim`). Where several elements
    are largest, they share the gradient evenly (those of `max` go to one).
    """
    axes = reduced_axes(input, dim)
    if input.dtype.itemsize == 2 and is_float_or_complex(input.dtype):
        return rounded(amax(widened(input), axes, keepdim), input.dtype)
    if len(axes) == 1 and input.dtype.kind == "f":
        result = largest_along(input, axes[0])
        return contiguous(result if keepdim else np.squeeze(result, axes[0]))
    return contiguous(np.max(input, axis=axes, keepdims=keepdim))


@native
@checked
def amin(input: Array, dim: Dims = (), keepdim: bool = False) -> Array:
    """The smallest element over `dim`, or over everything.

    `dim` is a dimension or several; the result lacks them, or has them with size 1 (`keepdim`). Where several elements
    are smallest, they share the gradient evenly (those of `min` go to one).
    """
    if input.dtype.itemsize == 2 and is_float_or_complex(input.dtype):
        return rounded(amin(widened(input), reduced_axes(input, dim), keepdim), input.dtype)
    return contiguous(np.min(input, axis=reduced_axes(input, dim), keepdims=keepdim))


@native
@checked
def aminmax(input: Array, *, dim: Dim | None = None, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest and the largest element over `dim`, or over everything."""
    axes = None if dim is None else (dim,)
    where = reduced_axes(input, axes)
    return np.min(input, axis=where, keepdims=keepdim), np.max(input, axis=where, keepdims=keepdim)


@native
@checked
def argmax(input: Array, dim: Dim | None = None, keepdim: bool = False) -> Array:
    """The first index of the largest element along `dim`, or in the flattened tensor.

    The result is int64, without `dim`, or with size 1 for it (`keepdim`); without dimensions if `dim` is None. It has
    no gradient.
    """
    return _place(np.argmax, input, dim, keepdim)


@native
@checked
def argmin(input: Array, dim: Dim | None = None, keepdim: bool = False) -> Array:
    """The first index of the smallest element along `dim`, or in the flattened tensor.

    The result is int64, without `dim`, or with size 1 for it (`keepdim`); without dimensions if `dim` is None. It has
    no gradient.
    """
    return _place(np.argmin, input, dim, keepdim)


def _place(function: Any, input: Array, dim: int | None, keepdim: bool) -> Array:
    if input.ndim == 0:
        return np.zeros((), np.int64)
    indices = _first(function, input, dim)
    if not keepdim:
        return indices
    return indices.reshape((1,) * input.ndim) if dim is None else np.expand_dims(indices, dim)


@by_device
def share_among_equals(input: Array, extreme: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """How a gradient is shared among the elements equal to the extreme: evenly, zero for the others."""
    axes = reduced_axes(input, dim)
    if not keepdim:
        extreme = np.expand_dims(extreme, axes)
    chosen = input == extreme
    count = add_up(chosen, axes, True)
    return (chosen / count).astype(input.dtype)


@native
def extremum_grad(grad: Array, input: Array, extreme: Array, dim: Dims, keepdim: bool) -> Array:
    """The gradient of amax and amin: in equal shares to all elements that are the extreme."""
    axes = reduced_axes(input, dim)
    wide = grad if keepdim or not input.ndim else np.expand_dims(grad, axes)
    return wide * share_among_equals(input, extreme, dim, keepdim)


@by_device
def share_evenly(grad: Array, input: Array, extreme: Array) -> Array:
    """The gradient of one element of all: in equal shares to all that equal it; that of a NaN goes to the NaNs."""
    return grad * share_among_equals_or_nans(input, extreme)


def share_among_equals_or_nans(input: Array, extreme: Array) -> Array:
    """As `shares` over everything, where a extreme of NaN is the NaNs'."""
    chosen = input == extreme
    if is_float_or_complex(input.dtype) and not is_at_hand(extreme):
        chosen = np.where(np.isnan(extreme), np.isnan(input), chosen)
    elif is_float_or_complex(input.dtype) and np.isnan(extreme):
        chosen = np.isnan(input)
    # None is chosen where the result was changed behind backward's back.
    return (chosen / np.maximum(add_up(chosen, None), 1)).astype(input.dtype)
