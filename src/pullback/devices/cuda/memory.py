"""How much of a GPU's memory is in use: CuPy's pool, and the most it was since somebody asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MemoryWatch:
    """Counts of bytes. The most in use is followed only once it was asked for: a hook costs time at every allocation."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cupy: Any = import_module("cupy")
        self._hook: Any = None
        self._most_reserved = 0

    def used(self) -> int:
        """Bytes in use, with those of results that were put off."""
        self._library.pending.flush()
        return int(self._cupy.get_default_memory_pool().used_bytes())

    def reserved(self) -> int:
        """Bytes taken from the driver."""
        return int(self._cupy.get_default_memory_pool().total_bytes())

    def most_used(self) -> int:
        """The most bytes in use since `reset`."""
        return max(self.used(), 0 if self._hook is None else self._hook.most)

    def most_reserved(self) -> int:
        """The most bytes taken from the driver, of those times when somebody asked."""
        self._most_reserved = max(self._most_reserved, self.reserved())
        return self._most_reserved

    def reset(self) -> None:
        """Follow the bytes in use from here on."""
        self._most_reserved = self.reserved()
        if self._hook is None:
            self._hook = _make_hook(self._cupy)
            self._hook.__enter__()
        self._hook.most = self._hook.now = self.used()


def _make_hook(cupy: Any) -> Any:
    class Peak(cupy.cuda.MemoryHook):  # type: ignore[misc]  # CuPy is Any to the checker
        name = "pullback"
        now = most = 0

        def malloc_postprocess(self, **told: Any) -> None:
            self.now += told["mem_size"]
            self.most = max(self.most, self.now)

        def free_postprocess(self, **told: Any) -> None:
            self.now -= told["mem_size"]

    return Peak()
