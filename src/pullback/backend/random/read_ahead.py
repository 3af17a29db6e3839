"""Uniform numbers read ahead of their use, because nobody knows yet how many of them will be needed."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from pullback.backend.random.generator import Generator
from pullback.typing import Array

_LEAST = 1024  # numbers drawn at once


class ReadAhead:
    """A generator's float64 numbers from here on. Leaving the context gives back those from `position` on."""

    def __init__(self, source: Generator) -> None:
        self.source = source
        self.position = 0
        """How many numbers have been used up."""
        self._blocks: list[tuple[int, Array]] = []  # where each block of `_numbers` begins, and the engine before it
        self._numbers = np.empty(0)
        self._first = 0  # the place of _numbers[0] in the stream

    def __enter__(self) -> Self:
        self.source.lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._give_back()
        finally:
            self.source.lock.release()

    def window(self, count: int) -> Array:
        """The next `count` numbers, which stay where they are until `position` moves."""
        start = self.position - self._first
        missing = start + count - len(self._numbers)
        if missing > 0:
            end = self._first + len(self._numbers)
            self._blocks = [*self._blocks_in_use(), (end, self.source.copy_engine())]
            more = self.source.uniform64(max(missing, count, _LEAST))
            self._numbers = np.concatenate([self._numbers[start:], more])
            self._first, start = self.position, 0
        return self._numbers[start : start + count]

    def _blocks_in_use(self) -> list[tuple[int, Array]]:
        later = [block for block in self._blocks if block[0] > self.position]
        return [*self._blocks[: len(self._blocks) - len(later)][-1:], *later]

    def _give_back(self) -> None:
        if not self._blocks:
            return
        start, engine = self._blocks_in_use()[0]
        self.source.restore_engine(engine)
        self.source.random64(self.position - start)
