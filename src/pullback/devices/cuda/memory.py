"""How much of the GPUs' memory is in use: CuPy's pools, and the most it was since somebody asked."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any


class MemoryWatch:
    """Counts of bytes, by the number of the GPU.

    The most in use is followed only once it was asked for: a hook costs time at every allocation.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cupy: Any = import_module("cupy")
        self._hook: Any = None
        self._most_reserved: dict[int, int] = {}

    def _count(self, number: int, what: str) -> int:
        with self._cupy.cuda.Device(number):
            return int(getattr(self._cupy.get_default_memory_pool(), what)())

    def used(self, number: int) -> int:
        """Bytes in use, with those of results that were put off."""
        self._library.pending.flush()
        return self._count(number, "used_bytes")

    def reserved(self, number: int) -> int:
        """Bytes taken from the driver."""
        return self._count(number, "total_bytes")

    def most_used(self, number: int) -> int:
        """The most bytes in use since `reset`."""
        return max(self.used(number), 0 if self._hook is None else self._hook.most.get(number, 0))

    def most_reserved(self, number: int) -> int:
        """The most bytes taken from the driver, of those times when somebody asked."""
        most = self._most_reserved[number] = max(self._most_reserved.get(number, 0), self.reserved(number))
        return most

    def reset(self, number: int) -> None:
        """Follow the bytes in use from here on."""
        self._most_reserved[number] = self.reserved(number)
        if self._hook is None:
            self._hook = _make_hook(self._cupy)
            self._hook.__enter__()
        self._hook.most[number] = self._hook.now[number] = self.used(number)


def _make_hook(cupy: Any) -> Any:
    class Peak(cupy.cuda.MemoryHook):  # type: ignore[misc]  # CuPy is Any to the checker
        name = "pullback"

        def __init__(self) -> None:
            super().__init__()
            self.now: Counter[int] = Counter()
            self.most: dict[int, int] = {}

        def malloc_postprocess(self, **told: Any) -> None:
            number = told["device_id"]
            self.now[number] += told["mem_size"]
            self.most[number] = max(self.most.get(number, 0), self.now[number])

        def free_postprocess(self, **told: Any) -> None:
            self.now[told["device_id"]] -= told["mem_size"]

    return Peak()
