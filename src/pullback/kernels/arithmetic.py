"""Addition, multiplication and what is made of them, element by element."""

from __future__ import annotations


import numpy as np

from pullback.typing import Array, Scalar


def add(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> Array:
    """Add `other`, scaled by `alpha`, to `input`."""
    return input + other if alpha == 1 else input + other * np.asarray(alpha, np.result_type(input))  # type: ignore[no-any-return]


def sub(input: Array, other: Array | Scalar, *, alpha: Scalar = 1) -> Array:
    """Subtract `other`, scaled by `alpha`, from `input`."""
    if input.dtype == bool:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    return input - other if alpha == 1 else input - other * np.asarray(alpha, np.result_type(input))  # type: ignore[no-any-return]


def mul(input: Array, other: Array | Scalar) -> Array:
    """Multiply element by element."""
    return input * other  # type: ignore[no-any-return]


def div(input: Array, other: Array | Scalar) -> Array:
    """Divide element by element."""
    return input / other  # type: ignore[no-any-return]


def neg(input: Array) -> Array:
    """Change the sign."""
    if input.dtype == bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. Use the `~` or `logical_not()` operator instead."
        )
    return -input  # type: ignore[no-any-return]


def conj(input: Array) -> Array:
    """The complex conjugate; a real array is returned as it is."""
    return input.conjugate()  # type: ignore[no-any-return]
