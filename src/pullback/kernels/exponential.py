"""Powers, roots, exponentials and logarithms, element by element."""

from __future__ import annotations

import math

import numpy as np

from pullback.checks import checked
from pullback.kernels.dtype_support import _in_float32
from pullback.kernels.special_evaluation import _through_float64
from pullback.native import by_device, by_element, native
from pullback.typing import Array, Scalar

_MANY = 256
"""Elements for which two more passes are worth it."""


@by_element
def pow(input: Array, exponent: Array) -> Array:
    """Raise to powers given by a tensor."""
    if input.dtype.kind in "iu":
        return _integer_power(input, exponent)
    powers = np.power(input, exponent)
    return powers if powers.dtype.kind != "c" else _with_powers_of_zero(powers, input, exponent)


@native
@checked
def pow_scalar(input: Array, exponent: Array | Scalar) -> Array:
    """Raise to a power given by a number."""
    kind = input.dtype.kind
    if kind == "b":
        return np.where(input, True, not exponent)
    if exponent == 0:
        return np.ones_like(input)
    if exponent == 1:
        return np.positive(input)
    if exponent == 2:
        return input * input
    if exponent == 3 and kind != "c":
        return input * input * input
    if exponent == -2 and kind != "c":
        return 1 / (input * input)
    if exponent == -0.5 and kind != "c":
        return rsqrt(input)
    if exponent == 0.5:
        return np.sqrt(input)
    if kind in "iu":
        return _integer_power(input, exponent)
    if kind == "c":
        return _with_powers_of_zero(np.power(input, exponent), input, exponent)
    return _real_power(input, exponent)


@by_device
def pow_base(exponent: Array, input: Array | Scalar) -> Array:
    """Raise a number to powers given by a tensor; the result is row-major, as PyTorch's."""
    if exponent.dtype.kind in "iu":
        return _integer_power(input, np.ascontiguousarray(exponent))
    powers = np.power(input, exponent, order="C")
    return powers if powers.dtype.kind != "c" else _with_powers_of_zero(powers, input, exponent)


def _with_powers_of_zero(powers: Array, input: Array | Scalar, exponent: Array | Scalar) -> Array:
    """Complex powers with those of zero as PyTorch has them: exp(exponent * log(0)), where log(0) is -inf."""
    zero = np.equal(input, 0)
    if not zero.any():
        return powers
    powers, real = np.asarray(powers), np.real(exponent)  # a number, where both are numbers
    np.copyto(powers, complex(0.0, -0.0), where=zero & np.greater(real, 0))
    np.copyto(powers, complex(np.nan, np.nan), where=zero & np.equal(real, 0))
    np.copyto(powers, complex(np.inf, np.nan), where=zero & np.less(real, 0))
    return powers


@native
def sqrt(input: Array) -> Array:
    """The square root.

    `input` has any shape, and the result has the same. y = input ** 0.5: NaN below 0.
    """
    return np.sqrt(input)


@native
@_in_float32
def rsqrt(input: Array) -> Array:
    """Compute 1 / sqrt(input).

    `input` has any shape, and the result has the same. It is inf at 0 and nan below.
    """
    return 1 / np.sqrt(input)


@native
def exp(input: Array) -> Array:
    """The exponential function.

    `input` has any shape, and the result has the same. y = e ** input.
    """
    return _through_float64(np.exp, input)


@native
def expm1(input: Array) -> Array:
    """Compute exp(input) - 1, accurate near zero.

    `input` has any shape, and the result has the same. For a small `input` the 1 would swallow its digits.
    """
    return _through_float64(np.expm1, input)


@native
def log(input: Array) -> Array:
    """The natural logarithm.

    `input` has any shape, and the result has the same. y = ln(input): minus infinity for 0, NaN below it.
    """
    return _through_float64(np.log, input)


@native
def log2(input: Array) -> Array:
    """The logarithm to base 2.

    `input` has any shape, and the result has the same. It is -inf at 0 and nan below. y = log(input) / log(2).
    """
    return _through_float64(np.log2, input)


@native
def log10(input: Array) -> Array:
    """The logarithm to base 10.

    `input` has any shape, and the result has the same. It is -inf at 0 and nan below. y = log(input) / log(10).
    """
    return _through_float64(np.log10, input)


@native
def log1p(input: Array) -> Array:
    """Compute log(1 + input), accurate near zero.

    `input` has any shape, and the result has the same. It is -inf at -1 and nan below. For a small `input` the 1 would
    swallow its digits.
    """
    return _complex_log1p(input) if input.dtype.kind == "c" else _through_float64(np.log1p, input)


@native
@checked
def logaddexp(input: Array, other: Array) -> Array:
    """Compute log(exp(input) + exp(other)) without overflow.

    `input` and `other` broadcast. y = ln(exp(input) + exp(other)).
    """
    return _complex_logaddexp(input, other) if input.dtype.kind == "c" else np.logaddexp(input, other)


@by_element
def logaddexp2(input: Array, other: Array) -> Array:
    """Compute log2(2**input + 2**other) without overflow.

    Both are broadcast together, of float dtypes.

    >>> import pullback
    >>> pullback.logaddexp2(pullback.tensor([3.0]), pullback.tensor([3.0]))
    tensor([4.])
    """
    return np.logaddexp2(input, other)


def _complex_log1p(input: Array) -> Array:
    """As the logarithm of 1 + input, whose magnitude near 1 is found from |1 + z|^2 - 1 = x (2 + x) + y^2."""
    z = np.asarray(input)
    x, y = z.real, z.imag
    is_near = (x > -0.5) & (x < 1) & (np.abs(y) < 1)
    excess = np.where(is_near, x * (2 + x) + y * y, 0)
    result = np.empty_like(z)
    result.real = np.where(is_near, 0.5 * np.log1p(excess), np.log(np.hypot(1 + x, y)))
    result.imag = np.arctan2(y, 1 + x)
    result.real = np.where(np.isnan(z), np.nan, np.where(z == 0, x, result.real))
    return result


def _real_power(base: Array, exponent: Array | Scalar) -> Array:
    """As NumPy's power, which takes a hundred times as long where many bases are negative: by their absolute values."""
    if base.dtype.char not in "fd" or base.size < _MANY or not isinstance(exponent, (int, float)):
        return np.power(base, exponent)
    if not math.isfinite(exponent):
        return np.power(base, exponent)
    powers = np.power(np.abs(base), exponent)
    if exponent % 2 == 1:
        np.copysign(powers, base, out=powers)
    elif exponent % 2 != 0:
        powers[(base < 0) & (base > -np.inf)] = np.nan
    return powers


def _integer_power(base: Array | Scalar, exponent: Array | Scalar) -> Array:
    """Powers of integers; of a negative exponent only the powers of 1 and -1 are not 0."""
    negative = np.less(exponent, 0)
    if not np.any(negative):
        return np.power(base, exponent)
    units = np.where(np.equal(base, 1), 1, np.where(np.equal(base, -1), 1 - 2 * np.mod(exponent, 2), 0))
    powers = np.power(base, np.where(negative, 0, exponent).astype(np.asarray(exponent).dtype))
    return np.where(negative, units, powers).astype(np.asarray(base).dtype)


def _complex_logaddexp(input: Array, other: Array) -> Array:
    first = input.real >= other.real
    high: Array = np.where(first, input, other)
    low: Array = np.where(first, other, input)
    return np.where(np.isneginf(high.real), high, high + np.log1p(np.exp(low - high)))
