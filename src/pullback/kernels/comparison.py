"""Comparisons and tests of single elements; all give bool."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.array_module import parts
from pullback.backend.halves import FLOAT32, cast_half
from pullback.native import by_device, by_element
from pullback.typing import Array, Scalar

_EXACT = 2048
"""Up to here float16 has every whole number."""


def _compared(function: Any, input: Array, other: Array | Scalar) -> Array:
    """A comparison of NumPy; of float16 in float32, since NumPy has no vectors of it."""
    if input.dtype.char == "e":
        if getattr(other, "dtype", None) == input.dtype:
            return function(cast_half(input, FLOAT32), cast_half(other, FLOAT32))
        if type(other) is float or (type(other) is int and -_EXACT <= other <= _EXACT):
            return function(cast_half(input, FLOAT32), np.float32(input.dtype.type(other)))
    return function(input, other)


@by_element
def eq(input: Array, other: Array | Scalar) -> Array:
    """Whether elements are equal.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result. The result is bool, and nan
    is neither equal to, smaller nor greater than anything. y = (input == other).
    """
    return _compared(np.equal, input, other)


@by_element
def ne(input: Array, other: Array | Scalar) -> Array:
    """Whether elements differ.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result. The result is bool, and nan
    differs from everything, itself too. y = (input != other).
    """
    return _compared(np.not_equal, input, other)


@by_element
def lt(input: Array, other: Array | Scalar) -> Array:
    """Whether elements of `input` are smaller.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result. The result is bool, and nan
    is neither equal to, smaller nor greater than anything. y = (input < other).
    """
    return _compared(np.less, input, other)


@by_element
def le(input: Array, other: Array | Scalar) -> Array:
    """Whether elements of `input` are smaller or equal.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result. The result is bool, and nan
    is neither equal to, smaller nor greater than anything. y = (input <= other).
    """
    return _compared(np.less_equal, input, other)


@by_element
def gt(input: Array, other: Array | Scalar) -> Array:
    """Whether elements of `input` are greater.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result. The result is bool, and nan
    is neither equal to, smaller nor greater than anything. y = (input > other).
    """
    return _compared(np.greater, input, other)


@by_element
def ge(input: Array, other: Array | Scalar) -> Array:
    """Whether elements of `input` are greater or equal.

    `input` and `other` (a tensor or a number) broadcast to one shape, that of the result. The result is bool, and nan
    is neither equal to, smaller nor greater than anything. y = (input >= other).
    """
    return _compared(np.greater_equal, input, other)


@by_device
def isnan(input: Array) -> Array:
    """Whether elements are not a number.

    `input` has any shape, and the result has the same. It is bool: y = (input != input).
    """
    return np.zeros(input.shape, bool) if input.dtype.kind in "biu" else np.isnan(input)


@by_device
def isinf(input: Array) -> Array:
    """Whether elements are infinite.

    `input` has any shape, and the result has the same. The result is bool: y = (abs(input) == inf). A complex number is
    infinite if one of its parts is.
    """
    return np.zeros(input.shape, bool) if input.dtype.kind in "biu" else np.isinf(input)


@by_device
def isfinite(input: Array) -> Array:
    """Whether elements are finite.

    `input` has any shape, and the result has the same. The result is bool, and false for nan and the infinities. A
    complex number is finite if both of its parts are.
    """
    return np.ones(input.shape, bool) if input.dtype.kind in "biu" else np.isfinite(input)


@by_device
def isposinf(input: Array) -> Array:
    """Whether elements are positive infinity.

    A tensor of bools in the shape of `input`.

    >>> import pullback
    >>> pullback.isposinf(pullback.tensor([-float("inf"), 0.0, float("inf")]))
    tensor([False, False,  True])
    """
    return np.equal(input, np.inf) if input.dtype.kind not in "biu" else np.zeros(input.shape, bool)


@by_device
def isneginf(input: Array) -> Array:
    """Whether elements are negative infinity.

    A tensor of bools in the shape of `input`.

    >>> import pullback
    >>> pullback.isneginf(pullback.tensor([-float("inf"), 0.0, float("inf")]))
    tensor([ True, False, False])
    """
    return np.equal(input, -np.inf) if input.dtype.kind not in "biu" else np.zeros(input.shape, bool)


@by_device
def isreal(input: Array) -> Array:
    """Whether elements have no imaginary part.

    A tensor of bools in the shape of `input`; all True where the dtype is not complex.

    >>> import pullback
    >>> pullback.isreal(pullback.tensor([1 + 0j, 1 + 2j]))
    tensor([ True, False])
    """
    return np.equal(parts(input)[1], 0) if input.dtype.kind in "cW" else np.ones(input.shape, bool)


@by_device
def isclose(input: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Whether elements differ by at most `atol + rtol * |other|`.

    `input` and `other`, of one dtype, broadcast to one shape, that of the result, which is bool. Equal infinities are
    close; nan is close to nan if `equal_nan` says so. y = abs(input - other) <= atol + rtol * abs(other).
    """
    close = np.equal(input, other)
    if equal_nan and input.dtype.kind not in "biu":
        close = close | (np.isnan(input) & np.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    allowed = atol + np.abs(rtol * (other if other.dtype.kind != "b" else other.astype(np.int8)))
    distance = np.abs(_difference(input, other))
    return close | (np.isfinite(distance) & (distance <= allowed))


def equal_arrays(input: Array, other: Array) -> bool:
    """Whether two arrays have the same shape and elements."""
    return input.shape == other.shape and bool(np.equal(input, other).all())


def _difference(input: Array, other: Array) -> Array:
    return input ^ other if input.dtype.kind == "b" else input - other
