"""Keeps Python's collector still while programs are recorded and planned.

Whatever is made then stays until the end. Looking through it for garbage, again and again, takes half of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pullback.native.locks import process_lock

_lock = process_lock()


class _Collecting:
    waiting = 0
    """How many want it to be still."""
    was_enabled = False


@contextmanager
def not_collecting() -> Iterator[None]:
    """Keep the collector still, in all threads; it goes on when nobody wants that any more."""
    with _lock:
        _Collecting.waiting += 1
        if _Collecting.waiting == 1:
            _Collecting.was_enabled = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _Collecting.waiting -= 1
            if not _Collecting.waiting and _Collecting.was_enabled:
                gc.enable()
