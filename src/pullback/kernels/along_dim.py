"""Taking elements along a dimension by index and putting them back: what order statistics hand to their gradients."""

from __future__ import annotations

import numpy as np

from pullback.native import native
from pullback.typing import Array, Scalar, Shape


@native
def take_along(input: Array, indices: Array, dim: int) -> Array:
    """The elements that `indices` names along `dim`."""
    if input.ndim == 0:
        return np.broadcast_to(input, indices.shape).copy()
    return np.take_along_axis(input, indices, dim) if indices.ndim else input[indices]


@native
def put_along(input: Array, indices: Array, shape: Shape, dim: int) -> Array:
    """The adjoint of take_along for indices that name no element twice."""
    if shape == ():
        return np.array(input).reshape(())
    result = np.zeros(shape, input.dtype)
    np.put_along_axis(result, indices, input, dim)
    return result


@native
def add_along(input: Array, indices: Array, shape: Shape, dim: int) -> Array:
    """The adjoint of take_along: gradients of an element that was taken several times add up."""
    if shape == ():
        return np.array(input).reshape(())
    result = np.zeros(shape, input.dtype)
    places = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    places[dim] = indices
    np.add.at(result, tuple(places), input)
    return result


def take_reduced(input: Array, indices: Array, dim: int, keepdim: bool) -> Array:
    """The one element along `dim` that each index of a reduction names."""
    if input.ndim == 0:
        return input
    if keepdim:
        return np.take_along_axis(input, indices, dim)
    return np.squeeze(np.take_along_axis(input, np.expand_dims(indices, dim), dim), dim)


@native
def put_reduced(input: Array, indices: Array, shape: Shape, dim: int, keepdim: bool) -> Array:
    """The adjoint of take_reduced: the gradient of a reduction that selects one element along `dim`."""
    if shape == ():
        return np.array(input)
    if not keepdim:
        input, indices = np.expand_dims(input, dim), np.expand_dims(indices, dim)
    result = np.zeros(shape, input.dtype)
    if result.size:
        np.put_along_axis(result, indices, input, dim)
    return result


def shift_and_fill(input: Array, dim: int, steps: int, fill: Scalar) -> Array:
    """The elements moved `steps` places along `dim`, with `fill` where none came from."""
    if input.ndim == 0:
        return np.full_like(input, fill) if steps else input
    size = input.shape[dim]
    result = np.full_like(input, fill)
    lead = (slice(None),) * dim
    if abs(steps) < size:
        target = slice(steps, None) if steps > 0 else slice(0, size + steps)
        source = slice(0, size - steps) if steps > 0 else slice(-steps, None)
        result[(*lead, target)] = input[(*lead, source)]
    return result
