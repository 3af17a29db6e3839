"""Gamma samples, many at a time, by Marsaglia and Tsang's method (2000).

Normal numbers come in pairs and attempts in their footsteps: one takes a normal number and, unless that is too low, a
uniform one; an element with a shape below 1 takes another uniform number before its first attempt. So a window of pairs
is laid over the stream on the guess that every attempt succeeds, and settles as Note [Settling] says.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pullback.backend.random import one_by_one
from pullback.backend.random.libm import through_libm
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

_LONGEST, _SHORTEST = 2048, 32  # pairs in a window; short where guesses turn out wrong


class _Attempts(NamedTuple):
    """What became of pairs: of the first normal number of each, then of the second."""

    cubes: tuple[Array, Array]
    taken: tuple[Array, Array]
    ends: tuple[Array, Array]
    """Places behind the last number used, that of the next element's scale included."""
    element: Array
    """The element that follows."""

    def put(self, first: int, tail: _Attempts) -> None:
        """Replace what begins at pair `first`."""
        for mine, other in zip((*self.cubes, *self.taken, *self.ends, self.element), tail.flat(), strict=True):
            mine[first:] = other

    def flat(self) -> tuple[Array, ...]:
        return (*self.cubes, *self.taken, *self.ends, self.element)


def draw_gamma_of_shapes(ahead: ReadAhead, alpha: Array, d: Array, cubes: Array, bases: Array) -> None:
    """Fill `cubes`, of which `d` times as much is a sample, and `bases` with what the scales of samples are powers of."""
    _Shapes(alpha, d).draw(ahead, cubes, bases)


class _Shapes:
    def __init__(self, alpha: Array, d: Array) -> None:
        self._count = len(alpha)
        # Past the last element nobody minds what is accepted, and nothing is drawn for a scale.
        self._d = np.append(d, 1.0)
        self._c = 1 / np.sqrt(9 * self._d)
        self._scaled = np.append(alpha < 1, False)

    def draw(self, ahead: ReadAhead, cubes: Array, bases: Array) -> None:
        if self._scaled[0]:
            bases[0] = 1 - ahead.uniform()
        size, filled = _SHORTEST, 0
        while filled < self._count:
            size = min(size, (self._count - filled) // 2 + 8)
            numbers = ahead.window(6 * size)
            pairs, rounds = self._settle(numbers, size, filled)
            taken, ends, values = (np.stack(each, 1).ravel() for each in (pairs.taken, pairs.ends, pairs.cubes))
            found = np.flatnonzero(taken)[: self._count - filled]
            cubes[filled : filled + len(found)] = values[found]
            following = bases[filled + 1 : filled + 1 + len(found)]
            following[:] = 1 - numbers[ends[found] - 1][: len(following)]
            filled += len(found)
            if filled == self._count:
                last = int(found[-1])
                if last % 2 == 0:
                    keep_second_normal(ahead, numbers[ends[last] - 3 :])
                ahead.position += int(ends[last])
            else:
                ahead.position += int(ends[-1])
            size = min(2 * size, _LONGEST) if rounds < 4 else max(size // 2, _SHORTEST)

    def _settle(self, numbers: Array, size: int, filled: int) -> tuple[_Attempts, int]:
        width = 6 if self._scaled[filled] else 4
        place, element = width * np.arange(size), np.minimum(filled + 2 * np.arange(size), self._count)
        pairs = self._try(numbers, place, element)
        rounds = 1
        while True:
            starts = np.cumsum(np.append(0, pairs.ends[1] - place)[:-1])
            served = filled + np.cumsum(np.append(0, pairs.element - element)[:-1])
            served = np.minimum(served, self._count)
            wrong = np.flatnonzero((starts != place) | (served != element))
            if not len(wrong):
                return pairs, rounds
            place, element = starts, served
            first = int(wrong[0])
            pairs.put(first, self._try(numbers, place[first:], element[first:]))
            rounds += 1

    def _try(self, numbers: Array, place: Array, element: Array) -> _Attempts:
        angle, radius = 2 * math.pi * numbers[place], np.sqrt(-2 * through_libm(math.log1p, -numbers[place + 1]))
        place = place + 2
        cubes, taken, ends = [], [], []
        for normal in (radius * np.cos(angle), radius * np.sin(angle)):
            y = 1 + self._c[element] * normal
            cube = y * y * y
            accepted = accepts(normal, y, cube, 1 - numbers[place], self._d[element])
            element = np.minimum(element + accepted, self._count)
            place = place + (y > 0) + (accepted & self._scaled[element])
            cubes.append(cube)
            taken.append(accepted)
            ends.append(place)
        return _Attempts((cubes[0], cubes[1]), (taken[0], taken[1]), (ends[0], ends[1]), element)


def accepts(normal: Array, y: Array, cube: Array, u: Array, d: Array) -> Array:
    """Which normal numbers are taken, where `y` is 1 + c * normal."""
    square = normal * normal
    accepted = u < 1 - one_by_one.SQUEEZE * square * square
    accepted &= y > 0
    unsure = np.flatnonzero(~accepted & (y > 0))
    v = cube[unsure]
    log_u, log_v = (through_libm(one_by_one.log, each) for each in (u[unsure], v))
    accepted[unsure] = log_u < 0.5 * square[unsure] + d[unsure] * (1 - v + log_v)
    return accepted


def keep_second_normal(ahead: ReadAhead, numbers: Array) -> None:
    """Leave the second normal number of the pair that two uniform ones make to whoever asks next."""
    angle, height = 2 * math.pi * float(numbers[0]), float(numbers[1])
    ahead.source.next_normal = math.sqrt(-2 * math.log1p(-height)) * math.sin(angle)
