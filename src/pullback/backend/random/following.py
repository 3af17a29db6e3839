"""Elements of a stream found together, where each takes as many numbers as it needs.

# Note [Following]
Where an element's numbers begin depends on how many the elements before it took. So what an attempt would come to is
computed for all places at which it may begin, at once, and the attempts that do take place are found by following them
from the first one, in jumps whose length doubles. Equal elements share one row of places. Differing ones have a row each,
of the places around the one where its turn is expected; where attempts leave the rows, new rows begin.
A state is a place in the stream, together with what else an attempt needs to know; states are numbered in the order of
places. Between two attempts nothing is remembered but the element and the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from pullback.backend.random.read_ahead import ReadAhead
from pullback.typing import Array

UNKNOWN = 2**40  # the advance of an attempt for which the numbers that were read do not suffice
_LONGEST = 8192  # numbers that are looked at together if all elements are equal
_DEVIATIONS = 1.4  # half the width of a row, in standard deviations of the place where the element's turn is


class Rows(NamedTuple):
    """The states at which elements are tried: `width` of them from `low` on, for each element."""

    element: Array
    low: Array
    width: int

    def of(self, table: Array, extra: int = 0) -> Array:
        """The entries of a table that has one for each state, row by row, and `extra` ones behind each row."""
        return windows(table, self.width + extra)[self.low]


def windows(table: Array, width: int) -> Array:
    """All stretches of so many entries, as a view."""
    step = table.strides[0]
    return np.ndarray((len(table) - width + 1, width), table.dtype, table, 0, (step, step))


class Attempts(NamedTuple):
    """What attempts come to, for the states of all rows."""

    advance: Array
    """From this state to the one behind, which is that of the next element if this one is done."""
    done: Array


class Sampler(ABC):
    """Draws elements from numbers that are read ahead. See Note [Following]."""

    alignment = 1  # rows begin at multiples of this many states
    slack = 64  # numbers that are read beyond the last place where an element's turn is expected
    rows = 128
    """How many elements are looked at together, if they differ. Rows get wider as they get more: measured."""

    def __init__(self, ahead: ReadAhead, samples: Array, taken: Array, variance: Array) -> None:
        """`taken` says how many numbers an element is expected to take: for each, or once if all are equal."""
        self.ahead = ahead
        self.samples = samples
        self.equal = len(taken) == 1
        self._taken, self._variance = taken, variance

    @abstractmethod
    def look(self, count: int) -> tuple[int, Array]:
        """Read `count` numbers; return the first state, and how many numbers each state is expected to lie behind it."""

    @abstractmethod
    def attempt(self, rows: Rows) -> Attempts:
        """Try elements at the states of their rows."""

    @abstractmethod
    def keep(self, element: Array, state: Array, advance: Array) -> None:
        """Take over the values of elements that were done at these states."""

    @abstractmethod
    def leave(self, state: int, finished: bool) -> None:
        """Use up the numbers before a state."""

    def revise(self, rows: Rows, attempts: Attempts, visited: Array) -> bool:
        """Look again at the attempts that take place, and say whether something changed."""
        return False

    def draw(self) -> None:
        """Fill `samples`."""
        filled = 0
        while filled < len(self.samples):
            remaining = len(self.samples) - filled
            first, rows = self._lay_one_row(remaining) if self.equal else self._lay_rows(filled, remaining)
            state, advance, done = self._visit(first, rows)
            found = np.flatnonzero(done)[:remaining]
            if len(found) == remaining:
                state, advance = state[: found[-1] + 1], advance[: found[-1] + 1]
            if not len(state):
                self.slack *= 2
                continue
            self.keep(np.arange(filled, filled + len(found)), state[found], advance[found])
            filled += len(found)
            self.leave(int(state[-1] + advance[-1]), len(found) == remaining)

    def _lay_one_row(self, remaining: int) -> tuple[int, Rows]:
        first, clock = self.look(min(_LONGEST, int(1.2 * remaining * float(self._taken[0])) + self.slack))
        low = first - first % self.alignment
        return first, Rows(np.zeros(1, np.intp), np.array([low]), len(clock) - low)

    def _lay_rows(self, filled: int, remaining: int) -> tuple[int, Rows]:
        end = filled + min(self.rows, remaining)
        turn = np.cumsum(self._taken[filled:end])
        spread = _DEVIATIONS * np.sqrt(np.cumsum(self._variance[filled:end]))
        first, clock = self.look(int(turn[-1] + 2 * spread[-1]) + self.slack)
        low, high = (np.searchsorted(clock, np.append(0, edge)[:-1]) for edge in (turn - spread, turn + spread))
        low = np.maximum(low - low % self.alignment - self.alignment, 0)
        low[0] = first - first % self.alignment
        width = int((high - low).max()) + 2 * self.alignment
        width = min(width + width % self.alignment, len(clock) - int(low[0]))
        fitting = int(np.searchsorted(low, len(clock) - width, side="right"))
        return first, Rows(np.arange(filled, filled + fitting), low[:fitting], width)

    def _visit(self, first: int, rows: Rows) -> tuple[Array, Array, Array]:
        """The states of the attempts that take place, as far as they stay within the rows, their advances and success."""
        attempts = self.attempt(rows)
        while True:
            visited = _follow(self._jumps(rows, attempts), first - int(rows.low[0]))
            if not self.revise(rows, attempts, visited):
                break
        advance, done = attempts.advance.ravel()[visited], attempts.done.ravel()[visited]
        state = rows.low[visited // rows.width] + visited % rows.width
        known = len(visited) - int(advance[-1] >= UNKNOWN)
        return state[:known], advance[:known], done[:known]

    def _jumps(self, rows: Rows, attempts: Attempts) -> Array:
        """Which attempt, numbered through all rows, follows each one; past the last one, if none does."""
        end = len(rows.low) * rows.width
        column = np.arange(rows.width) + attempts.advance
        jump = np.arange(end).reshape(-1, rows.width) + attempts.advance
        if not self.equal:
            down = np.append(rows.low[:-1] - rows.low[1:], rows.width)[:, None]  # nothing lies below the last row
            column += attempts.done * down
            jump += attempts.done * (down + rows.width)
        jump[(column < 0) | (column >= rows.width)] = end
        return np.append(jump, end)


def _follow(jump: Array, first: int) -> Array:
    """What jumps from `first` visit, before they end at the last place, by doubling the jumps."""
    end = len(jump) - 1
    visited = np.array([first])
    while visited[-1] != end:
        visited = np.concatenate([visited, jump[visited]])
        jump = jump[jump]
    return visited[: int(np.searchsorted(visited == end, True))]
