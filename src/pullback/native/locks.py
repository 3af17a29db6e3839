"""Locks that a child process finds open: at a fork they may be held by threads that are not there any more.

Python's locks of imports are not among them. Modules are imported on first use, also by threads while another one forks, and
a child would wait for ever for a module that such a thread had begun to import: the fork waits for these imports instead.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from typing import Any

LONGEST_WAIT = 10.0
"""Seconds after which a fork goes on all the same: an import may wait for the thread that forks."""
_PACKAGE = __name__.partition(".")[0] + "."


def process_lock(make: Any = threading.Lock) -> Any:
    """A lock of the whole process, `threading.Lock` or `threading.RLock`, which is open again after a fork.

    >>> with process_lock():
    ...     pass
    """
    lock = make()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock


def imported_elsewhere() -> list[str]:
    """The modules of the package that other threads are importing."""
    known: Any = getattr(importlib._bootstrap, "_module_locks", {})  # references to locks; the table is not public
    locks = {name: reference() for name, reference in list(known.items()) if name.startswith(_PACKAGE)}
    return [name for name, lock in locks.items() if getattr(lock, "owner", None) not in (None, threading.get_ident())]


def _wait_for_imports() -> None:
    end = time.monotonic() + LONGEST_WAIT
    while imported_elsewhere() and time.monotonic() < end:
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)
