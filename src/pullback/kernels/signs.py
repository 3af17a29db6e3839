"""Signs and magnitudes, of complex numbers too."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.checks import checked
from pullback.kernels.rounding import _copy
from pullback.native import by_element, native
from pullback.typing import Array, Scalar


@native
@checked
def sign(input: Array) -> Array:
    """-1, 0 or 1; nan is 0.

    `input` has any shape, and the result has the same. The gradient is 0 everywhere. Complex numbers are refused: `sgn`
    is theirs.
    """
    if input.dtype.kind == "b":
        return _copy(input)
    return (input > 0).astype(input.dtype) - (input < 0)


def signbit(input: Array) -> Array:
    """Whether the sign bit is set: -0.0 has it.

    A tensor of bools in the shape of `input`.

    >>> import pullback
    >>> pullback.signbit(pullback.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """
    return input < 0 if input.dtype.kind in "biu" else np.signbit(input)


@native
@checked
def copysign(input: Array, other: Array) -> Array:
    """The magnitude of `input` with the sign of `other`."""
    return np.copysign(input, other)


@native
def copysign_scalar(input: Array, other: Array | Scalar) -> Array:
    """The magnitude of `input` with the sign of a number."""
    return copysign(input, other)


@by_element
def heaviside(input: Array, values: Array) -> Array:
    """0 below zero, 1 above, `values` at zero."""
    return np.where(input == 0, values, (input > 0).astype(input.dtype))


@native
@checked
def abs(input: Array) -> Array:
    """The magnitude; real for a complex number.

    `input` has any shape, and the result has the same. y = |input|; the derivative at 0 is 0.
    """
    return np.abs(input)


@native
def sgn(input: Array) -> Array:
    """The complex number of the same angle and magnitude 1, and 0 for 0; the sign of a real number.

    Elementwise. y = x / |x|.

    >>> import pullback
    >>> pullback.sgn(pullback.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    if input.dtype.kind not in "cW":
        return sign(input)
    if input.dtype.kind == "W":
        return sgn(input.astype(np.complex64)).astype(input.dtype)
    magnitude = np.abs(input)
    if is_at_hand(magnitude) and magnitude.all():
        return input * (1 / magnitude)  # what NumPy's complex division computes, in a fifth of the time
    return np.where(magnitude == 0, input.dtype.type(0), input / np.where(magnitude == 0, 1, magnitude))
