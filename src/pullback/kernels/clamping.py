"""Choosing between elements: where, clamp, maximum and their relatives."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import number_as
from pullback.checks import checked
from pullback.kernels.creation import checked_number
from pullback.kernels.dtype_support import _in_float32
from pullback.native import native
from pullback.typing import Array, Scalar

_BITS = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}
# Below these sizes a masked write and np.where are faster than masking bits (100,000 elements: 380 us against 34 us).
_SMALL = 1024
_LARGE = 8192


def tied(input: Array, other: Array) -> Array:
    """`input` itself. In the graph it depends on `other` too, with the gradient zero, as gradients at kinks do."""
    return input


def tied_to(input: Array, other: Array, name: str = "") -> Array:
    """The same; `name` is that of the node in the graph."""
    return input


@native
def where(condition: Array, input: Array | Scalar, other: Array | Scalar) -> Array:
    """Elements of `input` where `condition` is true, of `other` elsewhere."""
    if condition.dtype != bool:
        if condition.dtype != np.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{condition.dtype}: compare it with something first."
            )
        condition = condition != 0
    return _select(condition, input, other)


def _select(condition: Array, input: Array | Scalar, other: Array | Scalar) -> Array:
    """As np.where. Of large arrays the bits are mixed: no branch, so none is mispredicted."""
    like = input if isinstance(input, np.ndarray) else other
    bits = _BITS.get(like.dtype) if isinstance(like, np.ndarray) and like.size > _LARGE else None
    if bits is None or like.shape != condition.shape or condition.ndim == 0:  # type: ignore[union-attr]
        return np.where(condition, input, other)
    first, second = (np.asarray(value, like.dtype).view(bits) for value in (input, other))  # type: ignore[union-attr]
    mixed = np.bitwise_xor(first, second)
    if mixed.shape != condition.shape:
        return np.where(condition, input, other)
    mixed &= np.negative(condition.view(np.int8))
    mixed ^= second
    return mixed.view(like.dtype)  # type: ignore[union-attr]


@native
def drop_where(condition: Array, grad: Array) -> Array:
    """Zero where `condition` is true, `grad` elsewhere."""
    if condition.shape != grad.shape or grad.ndim == 0:
        return np.where(condition, 0, grad)
    bits = _BITS.get(grad.dtype) if grad.size > _SMALL else None
    if bits is None:
        kept = grad.copy("K")
        np.putmask(kept, condition, 0)
        return kept
    mask = np.subtract(condition.view(np.int8), 1)  # -1 has all bits
    return np.bitwise_and(grad.view(bits), mask).view(grad.dtype)


@native
def keep_where(condition: Array, grad: Array) -> Array:
    """`grad` where `condition` is true, zero elsewhere."""
    return drop_where(~condition, grad)


@native
@checked
def maximum(input: Array, other: Array) -> Array:
    """The greater of two elements; nan if one is."""
    return np.maximum(input, other)


@native
@checked
def minimum(input: Array, other: Array) -> Array:
    """The smaller of two elements; nan if one is."""
    return np.minimum(input, other)


@native
@checked
def fmax(input: Array, other: Array) -> Array:
    """The greater of two elements; a nan gives way to a number."""
    return np.fmax(input, other)


@native
@checked
def fmin(input: Array, other: Array) -> Array:
    """The smaller of two elements; a nan gives way to a number."""
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
@_in_float32
@checked
def lerp(input: Array, end: Array, weight: Array) -> Array:
    """Interpolate linearly from `input` to `end`."""
    step = end - input
    return np.where(np.abs(weight) < 0.5, input + weight * step, end - step * (1 - weight))


@native
@_in_float32
@checked
def lerp_scalar(input: Array, end: Array, weight: Scalar) -> Array:
    """As lerp, by a number."""
    if isinstance(weight, complex):
        weight = checked_number(weight, input.dtype)
    step = end - input
    return input + weight * step if abs(weight) < 0.5 else end - step * (1 - weight)


@native
def nan_to_num(
    input: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Replace nan (by 0 unless given) and infinities (by the greatest and least finite numbers unless given)."""
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
