"""Magnitude, angle and sign of complex (and real) numbers, and complex numbers from their parts."""

from __future__ import annotations

import numpy as np

from pullback.backend.array_module import parts
from pullback.backend.dtype import complex_of
from pullback.native import by_device, by_element
from pullback.typing import Array


@by_device
def angle(input: Array) -> Array:
    """The angle of a complex number; of a real one 0 or pi, and nan of nan.

    `input` has any shape, and the result has the same. It is real. y = atan2(imag(input), real(input)).
    """
    if input.dtype.kind == "c":
        return np.angle(np.asarray(input, order="C"))
    zero_or_pi = np.where(input < 0, input.dtype.type(np.pi), input.dtype.type(0))
    return np.where(np.isnan(input), input, zero_or_pi)


def conj_physical(input: Array) -> Array:
    """The complex conjugate in new memory."""
    return input.copy() if input.dtype.kind == "b" else np.conjugate(input)


@by_element
def polar(abs: Array, angle: Array) -> Array:
    """Complex numbers from magnitudes and angles."""
    made = np.empty_like(abs + angle, dtype=complex_of(abs.dtype))
    made.real, made.imag = abs * np.cos(angle), abs * np.sin(angle)
    return made


@by_element
def complex(real: Array, imag: Array) -> Array:
    """Complex numbers from their parts."""
    made = np.empty_like(real + imag, dtype=complex_of(real.dtype))
    real_view, imaginary_view = parts(made)
    real_view[...], imaginary_view[...] = real, imag
    return made


def real_part(input: Array) -> Array:
    """The real part; a real array itself."""
    return parts(input)[0]


def imaginary_part(input: Array) -> Array:
    """The imaginary part; zeros for a real array."""
    return parts(input)[1]
