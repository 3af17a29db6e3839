"""Modified Bessel functions of both kinds, orders 0 and 1, plain and exponentially scaled; errors are a few ulp."""

from __future__ import annotations

import math

import numpy as np

from pullback.kernels import special_coefficients as table
from pullback.kernels.special_evaluation import _branch, _elementwise, _polynomial, _rational
from pullback.native import by_device
from pullback.typing import Array

_LOG_2 = math.log(2.0)


@by_device
def i0(input: Array) -> Array:
    """Compute the modified Bessel function of the first kind of order 0."""
    return _elementwise(_i0, input)


@by_device
def i0e(input: Array) -> Array:
    """Compute exp(-abs(input)) * i0(input)."""
    return _elementwise(_i0e, input)


@by_device
def i1(input: Array) -> Array:
    """Compute the modified Bessel function of the first kind of order 1."""
    return _elementwise(_i1, input)


@by_device
def i1e(input: Array) -> Array:
    """Compute exp(-abs(input)) * i1(input)."""
    return _elementwise(_i1e, input)


@by_device
def modified_bessel_i0(input: Array) -> Array:
    """Compute the modified Bessel function of the first kind of order 0."""
    return _elementwise(_i0, input)


@by_device
def modified_bessel_i1(input: Array) -> Array:
    """Compute the modified Bessel function of the first kind of order 1."""
    return _elementwise(_i1, input)


@by_device
def modified_bessel_k0(input: Array) -> Array:
    """Compute the modified Bessel function of the second kind of order 0; inf at zero, nan below."""
    return _elementwise(_k0, input)


@by_device
def modified_bessel_k1(input: Array) -> Array:
    """Compute the modified Bessel function of the second kind of order 1; inf at zero, nan below."""
    return _elementwise(_k1, input)


@by_device
def scaled_modified_bessel_k0(input: Array) -> Array:
    """Compute exp(input) * modified_bessel_k0(input)."""
    return _elementwise(_k0_scaled, input)


@by_device
def scaled_modified_bessel_k1(input: Array) -> Array:
    """Compute exp(input) * modified_bessel_k1(input)."""
    return _elementwise(_k1_scaled, input)


def _i0(x: Array) -> Array:
    return _branch(np.abs(x) <= 8.0, _i0_small, lambda x: _unscaled(_i0e_large(x), x), x)


def _i0e(x: Array) -> Array:
    return _branch(np.abs(x) <= 8.0, lambda x: np.exp(-np.abs(x)) * _i0_small(x), _i0e_large, x)


def _i1(x: Array) -> Array:
    return _branch(np.abs(x) <= 8.0, _i1_small, lambda x: _unscaled(_i1e_large(x), x), x)


def _i1e(x: Array) -> Array:
    return _branch(np.abs(x) <= 8.0, lambda x: np.exp(-np.abs(x)) * _i1_small(x), _i1e_large, x)


def _i0_small(x: Array) -> Array:
    return _polynomial(table.I0_SMALL, x * x)


def _i1_small(x: Array) -> Array:
    return x * _polynomial(table.I1_SMALL, x * x)


def _i0e_large(x: Array) -> Array:
    magnitude = np.abs(x)
    return _polynomial(table.I0_LARGE, 1.0 / magnitude - 0.0625) / np.sqrt(magnitude)


def _i1e_large(x: Array) -> Array:
    magnitude = np.abs(x)
    return np.copysign(_polynomial(table.I1_LARGE, 1.0 / magnitude - 0.0625) / np.sqrt(magnitude), x)


def _unscaled(scaled: Array, x: Array) -> Array:
    # In two steps, since the result still fits where exp(|x|) overflows.
    growth = np.exp(0.5 * np.abs(x))
    return scaled * growth * growth


def _k0(x: Array) -> Array:
    return _branch(x <= 1.0, _k0_small, lambda x: np.exp(-x) * _k0_scaled_large(x), x)


def _k1(x: Array) -> Array:
    return _branch(x <= 1.0, _k1_small, lambda x: np.exp(-x) * _k1_scaled_large(x), x)


def _k0_scaled(x: Array) -> Array:
    return _branch(x <= 1.0, lambda x: np.exp(x) * _k0_small(x), _k0_scaled_large, x)


def _k1_scaled(x: Array) -> Array:
    return _branch(x <= 1.0, lambda x: np.exp(x) * _k1_small(x), _k1_scaled_large, x)


def _k0_small(x: Array) -> Array:
    return _polynomial(table.K0_SMALL, x * x) - (np.log(x) - _LOG_2) * _i0_small(x)


def _k1_small(x: Array) -> Array:
    value = 1.0 / x + (x * _polynomial(table.K1_SMALL, x * x) + (np.log(x) - _LOG_2) * _i1_small(x))
    return np.where(x == 0.0, np.inf, value)


def _k0_scaled_large(x: Array) -> Array:
    return _rational(table.K0_LARGE_P, table.K0_LARGE_Q, 1.0 / x) / np.sqrt(x)


def _k1_scaled_large(x: Array) -> Array:
    return _rational(table.K1_LARGE_P, table.K1_LARGE_Q, 1.0 / x) / np.sqrt(x)
