"""Rounding, signs and fractional parts, element by element; with the zero gradient that such steps have."""

from __future__ import annotations

import numpy as np

from pullback.checks import checked
from pullback.native import by_device, by_element, native
from pullback.typing import Array


@native
@checked
def floor(input: Array) -> Array:
    """Round down.

    `input` has any shape, and the result has the same. y is the greatest whole number that is not above `input`. The
    gradient is 0 everywhere; integers stay as they are.
    """
    return _copy(input) if input.dtype.kind in "iu" else np.floor(input)


@native
@checked
def ceil(input: Array) -> Array:
    """Round up.

    `input` has any shape, and the result has the same. y is the smallest whole number that is not below `input`. The
    gradient is 0 everywhere; integers stay as they are.
    """
    return _copy(input) if input.dtype.kind in "iu" else np.ceil(input)


@native
@checked
def trunc(input: Array) -> Array:
    """Round towards zero.

    `input` has any shape, and the result has the same. y = sign(input) * floor(abs(input)). The gradient is 0
    everywhere; integers stay as they are.
    """
    return _copy(input) if input.dtype.kind in "iu" else np.trunc(input)


@native
@checked
def round(input: Array) -> Array:
    """Round to the nearest integer, halves to the even one."""
    return _copy(input) if input.dtype.kind in "iu" else np.rint(input)


@by_device
def round_decimals(input: Array, decimals: int) -> Array:
    """Round to a number of decimals; digits before the point where it is negative."""
    if input.dtype.itemsize == 2:
        return round_decimals(input.astype(np.float32), decimals).astype(input.dtype)
    power = input.dtype.type(10.0 ** abs(decimals))
    return np.rint(input * power) / power if decimals >= 0 else np.rint(input / power) * power


@native
@checked
def frac(input: Array) -> Array:
    """The part behind the point, with the sign of `input`.

    `input` has any shape, and the result has the same. y = input - trunc(input).
    """
    return input - np.trunc(input)


@by_element
def nextafter(input: Array, other: Array) -> Array:
    """The next representable number after `input` towards `other`."""
    return np.nextafter(input, other)


@by_device
def frexp(input: Array) -> tuple[Array, Array]:
    """The mantissa in [0.5, 1) and the exponent of 2."""
    mantissa, exponent = np.frexp(input)
    return mantissa, exponent.astype(np.int32)


@by_device
def ldexp(input: Array, other: Array) -> Array:
    """Compute input * 2**other.

    Both are broadcast together. It is the inverse of `frexp`.

    >>> import pullback
    >>> pullback.ldexp(pullback.tensor([0.75, 0.5]), pullback.tensor([3, -1]))
    tensor([6.0000, 0.2500])
    """
    return input * np.exp2(other)


def _copy(input: Array) -> Array:
    return np.array(input, copy=True, order="K")
