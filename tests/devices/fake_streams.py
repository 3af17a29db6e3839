"""Streams of the stand-in device: nothing runs beside anything else, but what a GPU would be free to do wrong is found.

Work is counted in the stream that is current. A stream knows of another's work what it waited for. Work on an array must
know of the work that made it, writing must know of everybody who read, and memory may go back to its stream only when
that stream knows of everybody who used it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from pullback.backend.device_array import DeviceArray
from pullback.modes.streams import Stream, chosen_stream, use_stream
from tests.devices.fake_library import library


class FakeStream(Stream):
    """A queue, with how much of every queue its next piece of work comes after."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known: dict[str, int] = {}

    def wait_stream(self, stream: FakeStream) -> None:
        if library.watch is not None:
            library.watch.waits.append((self.name, stream.name))
        for name, count in stream.known.items():
            self.known[name] = max(self.known.get(name, 0), count)

    def begin(self) -> None:
        pass

    def default(self) -> FakeStream:
        return DEFAULT

    def __repr__(self) -> str:
        return f"<stream {self.name}>"


DEFAULT = FakeStream("default")


class Watch:
    """What was done in which stream, and what was wrong with it."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.done: list[str] = []
        """The streams of all work, in order."""
        self.waits: list[tuple[str, str]] = []
        """Who waited for whom."""
        self._made: dict[int, tuple[str, int]] = {}
        self._read: dict[int, dict[str, int]] = {}
        self._homes: dict[int, FakeStream] = {}
        self._references: list[Any] = []

    def work(self, read: Any, made: Any, *, writes: bool = False) -> None:
        """A piece of work of the current stream."""
        stream: Any = chosen_stream()
        count = stream.known[stream.name] = stream.known.get(stream.name, 0) + 1
        self.done.append(stream.name)
        sources = {id(root): root for root in _roots(read)}
        for key in sources:
            self._require(stream, self._made.get(key), "reads what may not be made yet")
            self._read.setdefault(key, {})[stream.name] = count
        for root in _roots(made):
            key = id(root)
            if key in sources and not writes:
                continue  # a view, or nothing new
            if key in self._homes:
                for reader in self._read.get(key, {}).items():
                    self._require(stream, reader, "writes over what may still be read")
            else:
                self._homes[key] = stream
                self._references.append(weakref.ref(root, partial(self._gone, key)))
            self._made[key] = (stream.name, count)

    def _require(self, stream: FakeStream, event: tuple[str, int] | None, what: str) -> None:
        if event is not None and event[0] != stream.name and stream.known.get(event[0], 0) < event[1]:
            self.wrong.append(f"{stream.name} {what} in {event[0]}")

    def _gone(self, key: int, reference: Any) -> None:
        home = self._homes.pop(key)
        for user in self._read.pop(key, {}).items():
            self._require(home, user, "gets memory back that may still be read")
        self._made.pop(key, None)


def _roots(value: Any) -> Iterator[Any]:
    """The arrays that own the memory of all arrays in a value."""
    if isinstance(value, DeviceArray):
        value = value.raw
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _roots(part)
    elif isinstance(value, dict):
        yield from _roots(list(value.values()))


@contextmanager
def watched() -> Iterator[Watch]:
    """Check the order of all work on the device; the default stream is chosen at the beginning."""
    DEFAULT.known.clear()
    use_stream(DEFAULT)
    library.watch = Watch()
    try:
        yield library.watch
    finally:
        library.watch = None
        use_stream(DEFAULT)


@contextmanager
def on(stream: FakeStream) -> Iterator[None]:
    """Choose a stream for a block."""
    before = chosen_stream()
    use_stream(stream)
    try:
        yield
    finally:
        use_stream(before)
