"""How the special functions are evaluated: in float64 blocks that stay in the cache, one branch at a time.

A special function is written as a formula for a one-dimensional float64 block (`_elementwise` cuts the arrays into
such blocks and rounds the result to the input's dtype). Formulas may overwrite arrays they made, never their arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.backend.array_module import inverse_order
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, DType

# A formula's temporaries should fit the second-level cache, and large blocks hide NumPy's overhead per call; but a
# temporary larger than what malloc keeps costs page faults, twice the time in all. What malloc keeps grows with the
# arrays that a program frees, hence blocks of a sixteenth of the array.
_SMALLEST_BLOCK_BYTES = 1 << 16
_LARGEST_BLOCK_BYTES = 1 << 18


_FEW = 8192
"""Elements that take less time at once than in blocks."""


def _through_float64(function: Callable[..., Any], *inputs: Array) -> Array:
    """Compute float32 in float64 and round: NumPy's float32 tangent is 2.8 units in the last place off, PyTorch's 0.9."""
    first = inputs[0]
    if first.dtype != np.float32:
        return function(*inputs)
    if first.size <= _FEW or len(inputs) > 1:
        return function(*(input.astype(np.float64) for input in inputs)).astype(np.float32)
    return _in_blocks(function, np.float64, inputs)


def _elementwise(formula: Callable[..., Array], *inputs: Array) -> Array:
    """Apply a formula on float64 blocks to broadcast inputs; the result has the dtype of the first input."""
    return _in_blocks(formula, np.float64, inputs)


def _natively(formula: Callable[..., Array], *inputs: Array) -> Array:
    """Apply a formula to blocks of broadcast inputs in their own dtype, half precision in float32."""
    dtype = inputs[0].dtype
    return _in_blocks(formula, np.float32 if dtype.itemsize == 2 else dtype, inputs)


def _in_blocks(formula: Callable[..., Array], working: Any, inputs: tuple[Array, ...]) -> Array:
    order = _memory_order(inputs[0])
    if len(inputs) == 1 and order is not None:
        return _in_blocks(formula, working, (inputs[0].transpose(order),)).transpose(inverse_order(order))
    arrays = inputs if len(inputs) == 1 else np.broadcast_arrays(*inputs)
    first = arrays[0]
    refuse_kinds(first, "c", "special function")
    flat = [array.reshape(-1) for array in arrays]
    itemsize = np.dtype(working).itemsize
    size = min(max(first.size * itemsize // 16, _SMALLEST_BLOCK_BYTES), _LARGEST_BLOCK_BYTES) // itemsize
    if first.size <= size or not isinstance(flat[0], np.ndarray):
        result = formula(*(array.astype(working, copy=False) for array in flat)).astype(first.dtype, copy=False)
        return result.reshape(first.shape)
    result = np.empty_like(flat[0])
    for start in range(0, first.size, size):
        block = slice(start, start + size)
        result[block] = formula(*(array[block].astype(working, copy=False) for array in flat))
    return result.reshape(first.shape)


def _memory_order(array: Array) -> list[int] | None:
    """The dimensions from the largest stride to the smallest, None where that is how they stand or strides are 0."""
    strides = array.strides
    if 0 in strides or all(a >= b for a, b in pairwise(strides)):
        return None
    return sorted(range(array.ndim), key=lambda dim: -strides[dim])


def _branch(condition: Array, inside: Callable[..., Array], outside: Callable[..., Array], *arguments: Array) -> Array:
    """Evaluate `inside` where the condition holds and `outside` elsewhere, each only on the elements it is for."""
    count = np.count_nonzero(condition)
    if count == condition.size:
        return inside(*arguments)
    if count == 0:
        return outside(*arguments)
    # Positions, not masks: gathering through a random mask costs three times as much (mispredicted branches).
    result = np.empty_like(arguments[0])
    for positions, formula in ((np.flatnonzero(condition), inside), (np.flatnonzero(~condition), outside)):
        result[positions] = formula(*(argument.take(positions) for argument in arguments))
    return result


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Evaluate a polynomial, highest power first, by Horner's rule."""
    first, *rest = _constants(coefficients, x.dtype) if isinstance(x, np.ndarray) else coefficients
    result = x * first
    result += rest[0]
    for coefficient in rest[1:]:
        result *= x
        result += coefficient
    return result


@functools.cache
def _constants(coefficients: tuple[float, ...], dtype: DType) -> tuple[Array, ...]:
    # NumPy adds a 0-dim array in 300 ns where a Python float costs 550.
    return tuple(np.asarray(coefficient, dtype) for coefficient in coefficients)


def _rational(numerator: tuple[float, ...], denominator: tuple[float, ...], x: Array) -> Array:
    """Evaluate a ratio of polynomials."""
    result = _polynomial(numerator, x)
    result /= _polynomial(denominator, x)
    return result


def _square_remainder(x: Array) -> tuple[Array, Array]:
    """Return x * x rounded, and what the rounding lost; |x| below 1e18."""
    head = x.astype(np.float32).astype(np.float64)
    square = x * x
    return square, (head * head - square) + (x - head) * (x + head)


def _exp_square(x: Array, scale: float) -> Array:
    """Return exp(scale * x**2) to an ulp or two, where exp(scale * (x * x)) loses x**2 of them; scale a power of 2."""
    square, remainder = _square_remainder(np.clip(x, -64.0, 64.0))
    result = np.exp(scale * square)
    result *= 1.0 + scale * remainder
    return result


def _sin_pi(x: Array) -> Array:
    """Return sin(pi x), exact at multiples of 1/2."""
    turn = x - 2.0 * np.round(0.5 * x)
    folded = np.where(np.abs(turn) > 0.5, np.copysign(1.0, turn) - turn, turn)
    return np.sin(np.pi * folded)


def _tan_pi(x: Array) -> Array:
    """Return tan(pi x); infinite at odd multiples of 1/2, exact at multiples of 1/4."""
    turn = x - np.round(x)
    steep = np.abs(turn) > 0.25
    tangent = np.tan(np.pi * np.where(steep, np.copysign(0.5, turn) - turn, turn))
    return np.where(steep, 1.0 / tangent, tangent)


def _sum_remainder(a: Array, b: Array | float) -> tuple[Array, Array]:
    """Return a + b rounded, and what the rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product_remainder(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a * b rounded, and what the rounding lost (Dekker's product); both factors below 1e150."""
    product = a * b
    a_head, b_head = a * _SPLITTER, b * _SPLITTER
    a_head -= a_head - a
    b_head -= b_head - b
    a_tail, b_tail = a - a_head, b - b_head
    return product, ((a_head * b_head - product) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail


def _multiply_exactly(head: Array, tail: Array, factor: Array) -> tuple[Array, Array]:
    """Multiply the unevaluated sum head + tail by a factor, keeping twice the digits."""
    product, remainder = _product_remainder(head, factor)
    remainder += tail * factor
    total = product + remainder
    return total, remainder - (total - product)


_SPLITTER = 2.0**27 + 1.0
