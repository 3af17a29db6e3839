"""Memory as the profiler sees it: the storages of results and gradients, from when they are made until they are freed.

What a kernel allocates and frees inside of itself is not seen.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from pullback.backend.array_module import ndarray, storage_of
from pullback.tensor.tensor import Tensor


class MemoryEvent(NamedTuple):
    """Memory that was allocated, or, where `bytes` is negative, freed."""

    time_us: float
    bytes: int
    total_bytes: int
    """What was held then of all that was allocated since the profile began."""
    operation: str
    """The event that was running."""
    thread: int


class MemoryTracker:
    """Follows storages by weak references: it keeps nothing alive."""

    def __init__(self, account: Callable[[int], tuple[str, int]]) -> None:
        self.events: list[MemoryEvent] = []
        self._account = account
        self._live: dict[int, Any] = {}
        self.total = 0

    def see(self, value: Any) -> None:
        """Note the storages of a result: a Tensor, an array, or a tuple or list of these."""
        if isinstance(value, tuple | list):
            for item in value:
                self.see(item)
            return
        array = value._array if isinstance(value, Tensor) else value
        if not isinstance(array, ndarray):
            return
        owner = storage_of(array)
        key, size = id(owner), owner.nbytes
        if key in self._live or size == 0:
            return
        self._live[key] = weakref.ref(owner, lambda _: self._freed(key, size))
        self._note(size)

    def ignore(self, value: Any) -> None:
        """Say that a tensor was there before: it is not an allocation."""
        if isinstance(value, tuple | list):
            for item in value:
                self.ignore(item)
        elif isinstance(value, Tensor):
            owner = storage_of(value._array)
            key = id(owner)
            if key not in self._live and isinstance(owner, ndarray):
                self._live[key] = weakref.ref(owner, lambda _: self._live.pop(key, None))

    def stop(self) -> None:
        """Follow nothing any more."""
        self._live.clear()

    def _freed(self, key: int, size: int) -> None:
        if self._live.pop(key, None) is not None:
            self._note(-size)

    def _note(self, size: int) -> None:
        self.total += size
        operation, thread = self._account(size)
        self.events.append(MemoryEvent(time.perf_counter_ns() / 1000, size, self.total, operation, thread))
