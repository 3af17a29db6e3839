"""Window functions, computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.native import by_device
from pullback.typing import Array, DType


def _positions(size: int, periodic: bool) -> tuple[Array, int]:
    """The positions, and the number of steps from the first to the last (to the one after, if periodic)."""
    return np.arange(size, dtype=np.float64), max(size if periodic else size - 1, 1)


def _rounded(values: Array, dtype: DType) -> Array:
    if values.size == 1:
        return np.ones(1, dtype)
    return values.astype(dtype)


@by_device
def general_cosine_window(size: int, coefficients: Sequence[float], periodic: bool, dtype: DType) -> Array:
    """Sum of cosines with alternating signs: a_0 - a_1 cos(x) + a_2 cos(2x) - ..."""
    positions, steps = _positions(size, periodic)
    phase = positions * (2 * np.pi / steps)
    values = np.zeros(size)
    for order, coefficient in enumerate(coefficients):
        values += (-1) ** order * coefficient * np.cos(order * phase)
    return _rounded(values, dtype)


@by_device
def bartlett_window_values(size: int, periodic: bool, dtype: DType) -> Array:
    """A triangle that reaches zero at both ends."""
    positions, steps = _positions(size, periodic)
    return _rounded(1 - np.abs(2 * positions / steps - 1), dtype)


@by_device
def cosine_window_values(size: int, periodic: bool, dtype: DType) -> Array:
    """Half a wave of a sine, sampled between its zeros."""
    positions, steps = _positions(size, periodic)
    return _rounded(np.sin(np.pi * (positions + 0.5) / (steps + 1)), dtype)


@by_device
def exponential_window_values(size: int, center: float | None, tau: float, periodic: bool, dtype: DType) -> Array:
    """exp(-|n - center| / tau)."""
    positions, steps = _positions(size, periodic)
    middle = steps / 2 if center is None else center
    return _rounded(np.exp(-np.abs(positions - middle) / tau), dtype)


@by_device
def gaussian_window_values(size: int, std: float, periodic: bool, dtype: DType) -> Array:
    """exp(-((n - middle) / std)^2 / 2)."""
    positions, steps = _positions(size, periodic)
    return _rounded(np.exp(-0.5 * ((positions - steps / 2) / std) ** 2), dtype)


@by_device
def kaiser_window_values(size: int, beta: float, periodic: bool, dtype: DType) -> Array:
    """I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1."""
    positions, steps = _positions(size, periodic)
    x = 2 * positions / steps - 1
    inside = np.sqrt(np.maximum(1 - x * x, 0))
    return _rounded(np.i0(beta * inside) / np.i0(beta), dtype)
