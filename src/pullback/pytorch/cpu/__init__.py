"""The CPU, asked as programs ask a GPU: there is one, and its work is done when a call returns."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities",
    "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a CPU to compute on.

    >>> is_available()
    True
    """
    return True


is_initialized = is_available


def device_count() -> int:
    """How many CPUs a program can choose from."""
    return 1


def current_device() -> str:
    """The name of the only one.

    >>> current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Accepted: there is only one."""


def synchronize(device: Any = None) -> None:
    """Accepted: nothing is under way."""


def get_capabilities() -> dict[str, Any]:
    """What the processor can do, as far as it was asked: nothing."""
    return {}


class Stream:
    """A queue of work on the CPU: each call is done when it returns."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Accepted: nothing is under way."""

    def record_event(self, event: Any = None) -> Any:
        """An event at this point."""
        return Event() if event is None else event

    def wait_event(self, event: Any) -> None:
        """Accepted: nothing is under way."""


class Event:
    """A point in a queue of work, which is always reached."""

    def __init__(self, enable_timing: bool = False) -> None:
        pass

    def query(self) -> bool:
        """Whether it was reached."""
        return True

    def record(self, stream: Any = None) -> None:
        """Accepted: it is reached at once."""

    def synchronize(self) -> None:
        """Accepted: it was reached."""

    def wait(self, stream: Any = None) -> None:
        """Accepted: it was reached."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The queue that work goes to."""
    return _stream


class StreamContext:
    """A block whose work goes to a stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """A block whose work goes to `stream`."""
    return StreamContext(stream)


def __getattr__(name: str) -> Any:
    """`amp` is imported when first used."""
    if name == "amp":
        return import_module("pullback.cpu.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
