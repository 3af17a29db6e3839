"""Gamma samples, many elements at a time, by Marsaglia and Tsang's method (2000). See Note [Following].

Normal numbers come in pairs. An attempt takes one of them and, unless that is too low, a uniform number; an element with a
shape below 1 takes another uniform number before its first attempt, of which its scale is a power. So attempts begin in
one of two ways: with a new pair (the number for the scale is behind it), or as an element's first one with the second
number of a pair whose first one made the element before it, and which therefore lies three numbers back.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.backend import libm
from pullback.backend.random.following import Attempts, Rows, Sampler
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

_SQUEEZE = float(np.float32(0.0331))  # a float32 constant in PyTorch
_BACK = 3  # from the place of an attempt with the second number of a pair to that of the pair
_REACH = 5  # numbers that an attempt may look at
_FIRST_TAKEN = 2 * _BACK + 1  # the advance of an attempt that ends with the first number of a pair


class GammaSampler(Sampler):
    """Fills `samples` with cubes, of which d times as much is a sample of scale 1, and `bases`, whose powers are scales.

    States are even for a new pair, odd for the second number of one.
    """

    alignment = 2
    slack = 32
    rows = 256

    def __init__(self, ahead: ReadAhead, samples: Array, scaled: Array, d: Array) -> None:
        """`scaled` and `d` have an entry for each sample, or one if all are equal."""
        self.bases = np.ones(len(samples) + 1)
        self._d, self._c = d, 1 / np.sqrt(9 * d)
        self._scaled = scaled.astype(np.intp)
        # Behind the last element nothing is drawn for a scale.
        self._next_scaled = self._scaled if len(d) == 1 else np.append(self._scaled[1:], 0)
        self._fresh = True  # whether the first element has not begun
        self._filled = 0
        super().__init__(ahead, samples, 2 + 0.065 / d + self._scaled, 0.13 / d)  # measured, for one shape at a time

    def look(self, count: int) -> tuple[int, Array]:
        kept = self.ahead.source.next_normal
        numbers = np.append(np.zeros(_BACK), self.ahead.window(count + _REACH))
        places = len(numbers) - _REACH
        angle = 2 * math.pi * numbers[:places]
        radius = np.sqrt(-2 * libm.through_libm(math.log1p, -numbers[1 : places + 1]))
        self._first, self._second = radius * np.cos(angle), radius * np.sin(angle)
        self._heights = 1 - numbers
        place = _BACK
        if kept is not None:
            self._second[0] = kept
            self.bases[self._filled] = self._heights[place]
        elif self._fresh:
            self.bases[0] = self._heights[place]
            place += int(self._scaled[0])
        self._fresh = False
        first = 2 * place + (kept is not None)
        return first, (np.arange(2 * places) - first) / 2

    def leave(self, state: int, finished: bool) -> None:
        place, begun = state // 2, state % 2 == 0
        if finished and begun and self.equal:
            place -= int(self._scaled[0])
        self.ahead.position += place - _BACK
        self.ahead.source.next_normal = None if begun else float(self._second[place - _BACK])

    def keep(self, element: Array, state: Array, advance: Array) -> None:
        place = state // 2
        with_new_pair = np.where(advance == _FIRST_TAKEN, self._first[place], self._second[place])
        normal = np.where(state % 2, self._second[place - _BACK], with_new_pair)
        y = 1 + self._c[0 if self.equal else element] * normal
        self.samples[element] = y * y * y
        following = state + advance
        self.bases[element + 1] = self._heights[following // 2 - (following % 2 == 0)]
        self._filled += len(element)

    def attempt(self, rows: Rows) -> Attempts:
        shape = (len(rows.low), rows.width // 2, 2)
        advance, done = np.empty(shape, np.intp), np.empty(shape, np.bool_)
        places = Rows(rows.element, rows.low // 2, rows.width // 2)
        advance[..., 0], done[..., 0] = self._attempt_pairs(places)
        advance[..., 1], done[..., 1] = self._attempt_seconds(places)
        return Attempts(advance.reshape(len(rows.low), -1), done.reshape(len(rows.low), -1))

    def _attempt_pairs(self, rows: Rows) -> Attempts:
        """Attempts with a new pair: with its first number and, unless that is taken, with the second."""
        done = self._is_high_enough(rows, self._first) & rows.of(_squeezed(self._first, self._heights[2:]))
        advance = np.full(done.shape, _FIRST_TAKEN)
        row, column = np.nonzero(~done)
        place, element = rows.low[row] + column, rows.element[row]
        first, low = self._try(element, self._first[place], self._heights[place + 2])
        height = place + 3 - low
        second, low = self._try(element, self._second[place], self._heights[height])
        behind = 2 * (height - place + ~low + second * self._next_scaled[element])
        advance[row, column] = np.where(first, _FIRST_TAKEN, behind)
        done[row, column] = first | second
        return Attempts(advance, done)

    def _attempt_seconds(self, rows: Rows) -> Attempts:
        """First attempts of elements with the second number of a pair."""
        second = np.append(np.zeros(_BACK), self._second[:-_BACK])
        scaled, next_scaled = self._scaled[rows.element], self._next_scaled[rows.element]
        squeezed = np.append(_squeezed(second, self._heights), _squeezed(second, self._heights[1:]))
        low_of_squeezed = rows.low + len(second) * scaled
        done = self._is_high_enough(rows, second) & Rows(rows.element, low_of_squeezed, rows.width).of(squeezed)
        advance = np.empty(done.shape, np.intp)
        advance[...] = (2 * (scaled + 1 + next_scaled) - 1)[:, None]
        row, column = np.nonzero(~done)
        place = rows.low[row] + column
        taken, low = self._try(rows.element[row], second[place], self._heights[place + scaled[row]])
        advance[row, column] = 2 * (scaled[row] + ~low + taken * next_scaled[row]) - 1
        done[row, column] = taken
        return Attempts(advance, done)

    def _is_high_enough(self, rows: Rows, normal: Array) -> Array:
        return rows.of(normal) * self._c[rows.element][:, None] > -1

    def _try(self, element: Array, normal: Array, u: Array) -> tuple[Array, Array]:
        """Which normal numbers are taken, and which ones are too low to be tried."""
        y = 1 + self._c[element] * normal
        low = y <= 0
        taken = _squeezed(normal, u) & ~low
        unsure = np.flatnonzero(~(taken | low))
        v = y[unsure] * y[unsure] * y[unsure]
        taken[unsure] = _decide(u[unsure], normal[unsure] * normal[unsure], v, self._d[element[unsure]])
        return taken, low


def _squeezed(normal: Array, u: Array) -> Array:
    """Which normal numbers are taken without a logarithm, unless they are too low."""
    square = normal * normal
    return u[: len(normal)] < 1 - _SQUEEZE * square * square


def _decide(u: Array, square: Array, v: Array, d: Array) -> Array:
    """Whether log u < square / 2 + d (1 - v + log v); close decisions are made by libm's logarithms."""
    surplus = 0.5 * square + d * (1 - v + np.log(v)) - np.log(u)
    close = np.flatnonzero(np.abs(surplus) <= 1e-13 * (10 + d * (1 + v)))
    if len(close):
        log_u, log_v = (libm.through_libm(math.log, each[close]) for each in (u, v))
        surplus[close] = 0.5 * square[close] + d[close] * (1 - v[close] + log_v) - log_u
    return surplus > 0
