"""Choosing between elements: where, clamp, maximum and their relatives."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import number_as
from pullback.checks import checked
from pullback.native import native
from pullback.typing import Array, Scalar


@native
@checked
def maximum(input: Array, other: Array) -> Array:
    """The greater of two elements; nan if one is.

    `input` and `other` broadcast to one shape, that of the result, in the dtype that both promote to. Where they are
    equal, each gets half of the gradient.
    """
    return np.maximum(input, other)


@native
@checked
def minimum(input: Array, other: Array) -> Array:
    """The smaller of two elements; nan if one is.

    `input` and `other` broadcast to one shape, that of the result, in the dtype that both promote to. Where they are
    equal, each gets half of the gradient.
    """
    return np.minimum(input, other)


@native
@checked
def fmax(input: Array, other: Array) -> Array:
    """The greater of two elements; a nan gives way to a number.

    Both are broadcast together. Unlike `maximum`, it gives nan only where both are nan.

    >>> import pullback
    >>> pullback.fmax(pullback.tensor([1.0, float("nan")]), pullback.tensor([0.0, 2.0]))
    tensor([1., 2.])
    """
    return np.fmax(input, other)


@native
@checked
def fmin(input: Array, other: Array) -> Array:
    """The smaller of two elements; a nan gives way to a number.

    Both are broadcast together. Unlike `minimum`, it gives nan only where both are nan.

    >>> import pullback
    >>> pullback.fmin(pullback.tensor([1.0, float("nan")]), pullback.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """
    return np.fmin(input, other)


@native
@checked
def clamp(input: Array, min: Scalar | None = None, max: Scalar | None = None) -> Array:
    """Elements between two numbers; `max` where `min` is greater."""
    low = None if min is None else number_as(min, input.dtype)
    high = None if max is None else number_as(max, input.dtype)
    if input.dtype.kind == "f":
        return np.clip(input, -np.inf if low is None else low, np.inf if high is None else high)
    raised = input if low is None else np.maximum(input, low)
    return raised if high is None else np.minimum(raised, high)


@native
@checked
def clamp_tensor(input: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """Elements between two bounds of their own; `max` where `min` is greater."""
    raised = input if min is None else np.maximum(input, min)
    return raised if max is None else np.minimum(raised, max)


@native
def clamp_min(input: Array, min: Scalar) -> Array:
    """Elements not below a number."""
    return clamp(input, min)


@native
def clamp_min_tensor(input: Array, min: Array) -> Array:
    """Elements not below bounds of their own."""
    return clamp_tensor(input, min)


@native
def clamp_max(input: Array, max: Scalar) -> Array:
    """Elements not above a number."""
    return clamp(input, None, max)


@native
def clamp_max_tensor(input: Array, max: Array) -> Array:
    """Elements not above bounds of their own."""
    return clamp_tensor(input, None, max)


@native
def nan_to_num(
    input: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Replace nan (by 0 unless given) and infinities (by the greatest and least finite numbers unless given).

    `input` has any shape, and the result has the same; `nan`, `posinf` and `neginf` are what replaces them.
    """
    if input.dtype.kind in "biu":
        return np.array(input, copy=True, order="K")
    if input.dtype.kind == "c":
        parts = nan_to_num(input.real, nan, posinf, neginf), nan_to_num(input.imag, nan, posinf, neginf)
        return (parts[0] + 1j * parts[1]).astype(input.dtype)
    number = input.dtype.type
    replaced = np.where(np.isnan(input), number(0 if nan is None else nan), input)
    replaced = np.where(np.equal(input, np.inf), _limit(input, posinf, 1), replaced)
    return np.where(np.equal(input, -np.inf), _limit(input, neginf, -1), replaced)


def _limit(input: Array, given: float | None, sign: int) -> Array:
    from pullback.backend.dtype import finfo, from_numpy_dtype  # bfloat16 has limits of its own

    value = sign * finfo(from_numpy_dtype(input.dtype)).max if given is None else given
    return input.dtype.type(value)
