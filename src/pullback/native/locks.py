"""Locks that a child process finds open: at a fork they may be held by threads that are not there any more."""

from __future__ import annotations

import os
import threading
from typing import Any


def process_lock(make: Any = threading.Lock) -> Any:
    """A lock of the whole process, `threading.Lock` or `threading.RLock`, which is open again after a fork.

    >>> with process_lock():
    ...     pass
    """
    lock = make()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
