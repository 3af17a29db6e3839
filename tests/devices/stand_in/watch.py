"""Order: work that a GPU would be free to do too early, because no stream waited for what it needs.

The same questions as tests/devices/fake_streams.py asks, of the streams of several GPUs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import cupy

Clock = dict[Any, int]


def _name(stream: Any) -> Any:
    """A stream by its GPU: each has a default one of its own."""
    number = stream.device_id if stream.device_id >= 0 else cupy.cuda.runtime.getDevice()
    return (number, stream.ptr)


class Watch:
    """What each stream comes after, and what was wrong with the order of work."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.done: list[Any] = []
        """The streams of all work, in order."""
        self._known: dict[Any, Clock] = {}
        self._host: Clock = {}
        """What the host has seen to be done: all later work comes after it."""
        self._made: dict[int, tuple[Any, int]] = {}
        self._read: dict[int, Clock] = {}
        self._homes: dict[int, Any] = {}

    def _known_to(self, name: Any) -> Clock:
        return self._known.setdefault(name, dict(self._host))

    def record(self, event: Any, stream: Any) -> None:
        event.known = dict(self._known_to(_name(stream)))

    def seen(self, known: Clock) -> None:
        """The host has waited, or found that nothing is to be waited for."""
        for clock in (self._host, *self._known.values()):
            for name, count in known.items():
                clock[name] = max(clock.get(name, 0), count)

    def seen_stream(self, stream: Any) -> None:
        """The host has waited for all work of a stream."""
        self.seen(dict(self._known_to(_name(stream))))

    def wait(self, stream: Any, event: Any) -> None:
        known = self._known_to(_name(stream))
        for name, count in event.known.items():
            known[name] = max(known.get(name, 0), count)

    def work(self, stream: Any, read: Any, made: Any, writes: bool) -> None:
        name = _name(stream)
        known = self._known_to(name)
        count = known[name] = known.get(name, 0) + 1
        self.done.append(name)
        for memory in read:
            self._require(name, self._made.get(id(memory)), "reads what may not be made yet")
            self._read.setdefault(id(memory), {})[name] = count
        for memory in made:
            key = id(memory)
            if key in self._homes:
                if not writes:
                    continue
                for reader in self._read.get(key, {}).items():
                    self._require(name, reader, "writes over what may still be read")
            else:
                self._homes[key] = (memory.device_id, memory.home.ptr)
                weakref.finalize(memory, partial(self._gone, key))
            self._made[key] = (name, count)

    def _require(self, name: Any, event: tuple[Any, int] | None, what: str) -> None:
        if event is not None and event[0] != name and self._known_to(name).get(event[0], 0) < event[1]:
            self.wrong.append(f"stream {name} {what} in {event[0]}")

    def _gone(self, key: int) -> None:
        home = self._homes.pop(key)
        for user in self._read.pop(key, {}).items():
            self._require(home, user, "gets memory back that may still be read")
        self._made.pop(key, None)


@contextmanager
def watched() -> Iterator[Watch]:
    """Check the order of all work in a block."""
    watch = cupy.cuda.watch = Watch()
    try:
        yield watch
    finally:
        cupy.cuda.watch = None
