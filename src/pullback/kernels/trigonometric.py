"""Circular and hyperbolic functions, their inverses and angles, element by element."""

from __future__ import annotations

import numpy as np

from pullback.checks import checked
from pullback.kernels.dtype_support import _in_float32
from pullback.kernels.special_evaluation import _through_float64
from pullback.native import by_device, native
from pullback.typing import Array


@native
def sin(input: Array) -> Array:
    """The sine.

    `input` has any shape, and the result has the same. It is in radians. y = sin(input).
    """
    return np.sin(input)


@native
def cos(input: Array) -> Array:
    """The cosine.

    `input` has any shape, and the result has the same. It is in radians. y = cos(input).
    """
    return np.cos(input)


@native
def tan(input: Array) -> Array:
    """The tangent.

    `input` has any shape, and the result has the same. It is in radians. y = sin(input) / cos(input).
    """
    return _through_float64(np.tan, input)


@native
def asin(input: Array) -> Array:
    """The inverse sine.

    `input` has any shape, and the result has the same. y is in [-pi/2, pi/2] with sin(y) = input, and nan where `input`
    is outside of [-1, 1].
    """
    return _through_float64(np.arcsin, input)


@by_device
def acos(input: Array) -> Array:
    """The inverse cosine.

    `input` has any shape, and the result has the same. y is in [0, pi] with cos(y) = input, and nan where `input` is
    outside of [-1, 1].
    """
    return np.arccos(input)


def atan(input: Array) -> Array:
    """The inverse tangent.

    `input` has any shape, and the result has the same. y is in (-pi/2, pi/2) with tan(y) = input.
    """
    return np.arctan(input)


@by_device
def sinh(input: Array) -> Array:
    """The hyperbolic sine.

    `input` has any shape, and the result has the same. y = (e ** input - e ** -input) / 2.
    """
    return np.sinh(input)


@native
def cosh(input: Array) -> Array:
    """The hyperbolic cosine.

    `input` has any shape, and the result has the same. y = (e ** input + e ** -input) / 2.
    """
    return _through_float64(np.cosh, input)


@native
def tanh(input: Array) -> Array:
    """The hyperbolic tangent.

    `input` has any shape, and the result has the same. y = (exp(x) - exp(-x)) / (exp(x) + exp(-x)), between -1 and 1.
    """
    return _through_float64(np.tanh, input)


@by_device
def asinh(input: Array) -> Array:
    """The inverse hyperbolic sine.

    Elementwise: log(x + sqrt(x ** 2 + 1)).

    >>> import pullback
    >>> pullback.asinh(pullback.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return np.arcsinh(input)


@by_device
def acosh(input: Array) -> Array:
    """The inverse hyperbolic cosine.

    Elementwise: log(x + sqrt(x ** 2 - 1)); nan below 1.

    >>> import pullback
    >>> pullback.acosh(pullback.tensor([1.0, 0.5]))
    tensor([0., nan])
    """
    return np.arccosh(input)


@by_device
def atanh(input: Array) -> Array:
    """The inverse hyperbolic tangent.

    Elementwise: log((1 + x) / (1 - x)) / 2; -1 and 1 give infinities, nan outside.

    >>> import pullback
    >>> pullback.atanh(pullback.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.5493,    inf])
    """
    return np.arctanh(input)


@native
@checked
def atan2(input: Array, other: Array) -> Array:
    """The angle of the point (other, input).

    `input` and `other` broadcast to one shape, that of the result. y is in [-pi, pi]: atan(input / other), in the
    quadrant that the signs of both say.
    """
    return _through_float64(np.arctan2, input, other)


@native
@checked
def hypot(input: Array, other: Array) -> Array:
    """Compute sqrt(input**2 + other**2) without overflow.

    `input` and `other` broadcast. y = sqrt(input ** 2 + other ** 2).
    """
    return np.hypot(input, other)


@native
@_in_float32
@checked
def deg2rad(input: Array) -> Array:
    """Degrees as radians.

    `input` has any shape, and the result has the same. y = input * pi / 180.
    """
    return input * (np.pi / 180)


@native
@_in_float32
@checked
def rad2deg(input: Array) -> Array:
    """Radians as degrees.

    Elementwise. y = x * 180 / pi.

    >>> import pullback
    >>> pullback.rad2deg(pullback.tensor([0.0, 1.5]))
    tensor([ 0.0000, 85.9437])
    """
    return input * (180 / np.pi)
