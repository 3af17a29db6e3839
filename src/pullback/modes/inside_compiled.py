"""Whether a compiled function runs: what has two ways to the same result takes the one that needs no values then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Inside(threading.local):
    depth = 0


_inside = _Inside()


def is_inside() -> bool:
    """Whether a compiled function runs in this thread, or what it was made of: code may ask, and always hears the same."""
    return _inside.depth > 0


def call_inside(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a compiled function's Python."""
    _inside.depth += 1
    try:
        return function(*args, **kwargs)
    finally:
        _inside.depth -= 1


@contextmanager
def outside() -> Iterator[None]:
    """What runs here is kept out of programs."""
    former, _inside.depth = _inside.depth, 0
    try:
        yield
    finally:
        _inside.depth = former
