"""Sobol sequences: direction numbers, their scrambling, and the points that they give.

A point's coordinate is the exclusive or of those direction numbers whose bits are set in the Gray code of its position.
The initial numbers are those of Joe and Kuo (search criterion D(6)); `sobol_directions.npz` has 1,111 dimensions, and
SciPy's table of the same numbers serves up to 21,201.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pullback.backend.optional_packages import import_scipy
from pullback.native import by_device

BITS = 30


@cache
def _table(dimension: int) -> tuple[Any, Any]:
    """The polynomials and the initial numbers of at least so many dimensions."""
    with np.load(Path(__file__).with_name("sobol_directions.npz")) as own:
        polynomials, initial = own["poly"], own["vinit"]
    if dimension <= len(polynomials):
        return polynomials, initial
    what = f"SobolEngine of {dimension} dimensions (up to {len(polynomials)} work without it)"
    with np.load(Path(import_scipy("stats", what).__file__).with_name("_sobol_direction_numbers.npz")) as theirs:
        return theirs["poly"], theirs["vinit"]


@by_device
def sobol_directions(dimension: int) -> Any:
    """The direction numbers of each dimension, an int64 array of shape (dimension, BITS)."""
    polynomials, initial = _table(dimension)
    numbers = np.zeros((dimension, BITS), np.int64)
    numbers[0] = 1
    for row in range(1, dimension):
        _extend(numbers[row], int(polynomials[row]), initial[row].tolist())
    return numbers << (BITS - 1 - np.arange(BITS))


def _extend(row: Any, polynomial: int, initial: list[int]) -> None:
    """Fill a row of direction numbers by the recurrence of its primitive polynomial."""
    degree = polynomial.bit_length() - 1
    numbers = initial[:degree]
    terms = [k for k in range(degree) if polynomial >> (degree - 1 - k) & 1]
    for place in range(degree, BITS):
        number = numbers[place - degree]
        for k in terms:
            number ^= numbers[place - k - 1] << (k + 1)
        numbers.append(number)
    row[:] = numbers


@by_device
def scramble_directions(directions: Any, matrices: Any) -> Any:
    """Multiply the bits of each direction number by a lower triangular matrix of bits, whose diagonal counts as ones."""
    places = BITS - 1 - np.arange(BITS)
    matrices = matrices | np.eye(BITS, dtype=matrices.dtype)
    bits = directions[:, :, None] >> places & 1
    return ((bits @ np.swapaxes(matrices, 1, 2) & 1) << places).sum(-1)


@by_device
def sobol_integers(directions: Any, shift: Any, start: int, count: int) -> Any:
    """The points from position `start` on, as integers below 2**BITS: an array of shape (count, dimension)."""
    positions = np.arange(start, start + count)
    gray = positions ^ positions >> 1
    points = np.broadcast_to(shift, (count, len(shift))).copy()
    for bit in range(int(positions.max(initial=0)).bit_length()):
        points ^= (gray >> bit & 1)[:, None] * directions[:, bit]
    return points
