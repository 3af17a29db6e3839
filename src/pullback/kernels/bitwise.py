"""Logic on bits and on truth values."""

from __future__ import annotations

import numpy as np

from pullback.native import by_element
from pullback.typing import Array, Scalar


@by_element
def bitwise_and(input: Array, other: Array | Scalar) -> Array:
    """And of the bits."""
    return np.bitwise_and(input, other)


@by_element
def bitwise_or(input: Array, other: Array | Scalar) -> Array:
    """Or of the bits."""
    return np.bitwise_or(input, other)


@by_element
def bitwise_xor(input: Array, other: Array | Scalar) -> Array:
    """Exclusive or of the bits."""
    return np.bitwise_xor(input, other)


def bitwise_not(input: Array) -> Array:
    """Not of the bits; of bools the opposite."""
    return np.invert(input)


@by_element
def bitwise_left_shift(input: Array, other: Array | Scalar) -> Array:
    """Shift the bits to the left; by the width or more (or by a negative number) nothing is left."""
    bits = input.dtype.itemsize * 8
    outside = np.less(other, 0) | np.greater_equal(other, bits)
    return np.where(outside, input.dtype.type(0), np.left_shift(input, np.where(outside, input.dtype.type(0), other)))


@by_element
def bitwise_right_shift(input: Array, other: Array | Scalar) -> Array:
    """Shift the bits to the right, keeping the sign; by the width or more only the sign is left."""
    last = input.dtype.type(input.dtype.itemsize * 8 - (1 if input.dtype.kind == "i" else 0))
    outside = np.less(other, 0) | np.greater_equal(other, last)
    amount = np.where(outside, input.dtype.type(0), other)
    beyond = -(input < 0).astype(input.dtype) if input.dtype.kind == "i" else input.dtype.type(0)
    return np.where(outside, beyond, np.right_shift(input, amount))


def logical_not(input: Array) -> Array:
    """Whether elements are zero.

    `input` has any shape, and the result has the same. The result is bool: y = (input == 0).
    """
    return np.invert(input) if input.dtype == np.bool_ else np.equal(input, 0)


@by_element
def logical_and(input: Array, other: Array) -> Array:
    """Whether both elements are non-zero.

    `input` and `other` broadcast to one shape, that of the result, which is bool. y = (input != 0) and (other != 0).
    """
    return np.logical_and(input, other)


@by_element
def logical_or(input: Array, other: Array) -> Array:
    """Whether one of the elements is non-zero.

    `input` and `other` broadcast to one shape, that of the result, which is bool. y = (input != 0) or (other != 0).
    """
    return np.logical_or(input, other)


@by_element
def logical_xor(input: Array, other: Array) -> Array:
    """Whether exactly one of the elements is non-zero.

    Both are broadcast together; a tensor of bools.

    >>> import pullback
    >>> pullback.logical_xor(pullback.tensor([0, 2, 3]), pullback.tensor([1, 0, 1]))
    tensor([ True,  True, False])
    """
    return np.logical_xor(input, other)
