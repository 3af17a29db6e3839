"""Gamma samples of one shape, many at a time, where it matters where in the stream a sample begins.

For a low shape many normal numbers are too low to be tried, and one below 1 takes a number more for each sample; each
shifts all that follows. So what an attempt would come to is computed for every place in the stream at which it could
begin, and the attempts that do take place are found by following them from the first.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.random.gamma_pairs import accepts, keep_second_normal
from pullback.backend.random.libm import through_libm
from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

_WINDOW = 8192  # numbers looked at together


def draw_gamma_of_one_shape(ahead: ReadAhead, scaled: bool, d: float, cubes: Array, bases: Array) -> None:
    """Fill `cubes`, of which `d` times as much is a sample, and `bases` with what the scales of samples are powers of."""
    if scaled:
        bases[0] = 1 - ahead.uniform()
    filled = 0
    while filled < len(cubes):
        numbers = ahead.window(min(_WINDOW, 8 * (len(cubes) - filled) + 64))
        visited, taken, values, ends = _visited_attempts(numbers, d, scaled)
        found = np.flatnonzero(taken[visited[:-1]])[: len(cubes) - filled]
        nodes = visited[found]
        cubes[filled : filled + len(found)] = values[nodes]
        following = bases[filled + 1 : filled + 1 + len(found)]
        following[:] = 1 - numbers[ends[nodes]][: len(following)]
        filled += len(found)
        if filled < len(cubes):
            ahead.position += int(visited[-1])
        else:
            last = int(nodes[-1])
            if last < len(values) // 3 and visited[found[-1] + 1] >= len(values) // 3:
                keep_second_normal(ahead, numbers[last : last + 2])
            ahead.position += int(ends[last])


def _visited_attempts(numbers: Array, d: float, scaled: bool) -> tuple[Array, Array, Array, Array]:
    """The attempts that take place, the last of them not to be used; and of all: taken, cube, and place behind.

    Of `size` places each is thrice an attempt: with a new pair of normal numbers that begins there, with the second
    number of that pair after the first one was refused, and with the second one after another sample has begun.
    """
    size = len(numbers) - 5
    place = np.arange(size)
    angle = 2 * math.pi * numbers[:size]
    radius = np.sqrt(-2 * through_libm(math.log1p, -numbers[1 : size + 1]))
    first, second = radius * np.cos(angle), radius * np.sin(angle)
    heights = 1 - numbers
    taken_first, cube_first, low_first = _attempt(first, heights[2 : size + 2], d)
    taken_second, cube_second, low_second = _attempt(second, heights[3 : size + 3], d)
    # Right behind a first number that was too low the second one takes the number meant for the first.
    directly = np.flatnonzero(low_first)
    taken_first[directly] = _attempt(second[directly], heights[directly + 2], d)[0]
    values = [np.where(low_first, cube_second, cube_first), cube_second, cube_second]
    taken = [taken_first, taken_second, taken_second]
    if scaled:
        taken[2] = _attempt(second, heights[4 : size + 4], d)[0]
    shift = [each.astype(np.intp) if scaled else 0 for each in taken]
    after_first = np.where(taken_first & scaled, 2 * size, size) + place
    after_low = place + 2 + np.where(low_second, 0, 1 + shift[0])
    following = [
        np.where(low_first, _pair_at(after_low, size), after_first),
        _pair_at(place + 3 + np.where(low_second, 0, 1 + shift[1]), size),
        _pair_at(place + 4 + np.where(low_second, 0, 1 + shift[2]), size),
    ]
    visited = _follow(np.concatenate([*following, [3 * size]]))
    last_pair = np.flatnonzero(visited < size)[-1]
    ends = np.concatenate([place + 3, place + 4, place + 5])
    return visited[: last_pair + 1], np.concatenate(taken), np.concatenate(values), ends


def _attempt(normal: Array, u: Array, d: float) -> tuple[Array, Array, Array]:
    """Whether normal numbers are taken, the cubes, and whether they are too low to be tried."""
    y = 1 + 1 / math.sqrt(9 * d) * normal
    cube = y * y * y
    return accepts(normal, y, cube, u, np.broadcast_to(d, y.shape)), cube, y <= 0


def _pair_at(place: Array, size: int) -> Array:
    return np.where(place < size, place, 3 * size)


def _follow(jump: Array) -> Array:
    """What jumps from 0 visit, before they end at the last place, by doubling the jumps."""
    end = len(jump) - 1
    visited = np.zeros(1, np.intp)
    while visited[-1] != end:
        visited = np.concatenate([visited, jump[visited]])
        jump = jump[jump]
    return visited[: np.flatnonzero(visited == end)[0]]
