"""The thread that helps collectives along while the program computes.

MPI works on a message only while somebody calls it. A thread asks for every Work that is under way, once a millisecond:
more often would take the interpreter away from the computation (a switch costs 5 to 50 us), and large messages need only
a handful of steps. Whoever waits for a Work asks itself, as often as it can. With nothing under way the thread sleeps and
looks five times a second whether another rank has a question.
"""

from __future__ import annotations

import threading
from typing import Any

from pullback.distributed.ledger import Ledger

__all__ = ["Progress"]

BUSY, IDLE = 0.001, 0.2
"""Seconds between two looks, with and without something under way."""


class Progress:
    """Polls what is under way in a thread of its own until it is stopped."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pending: list[Any] = []
        self._wake = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pullback-progress", daemon=True)
        self._thread.start()

    def watch(self, work: Any) -> None:
        """Help `work` along until it is done."""
        with self._wake:
            self._pending.append(work)
            self._wake.notify()

    def poll(self) -> None:
        """Help everything along once, from the calling thread."""
        for work in list(self._pending):
            if work.poll():
                self._forget(work)

    def _forget(self, work: Any) -> None:
        with self._wake:
            if work in self._pending:
                self._pending.remove(work)

    def _run(self) -> None:
        looks = 0
        while not self._stopped.is_set():
            with self._wake:
                self._wake.wait(BUSY if self._pending else IDLE)
            self.poll()
            looks += 1
            if not self._pending or looks % 100 == 0:
                self._ledger.serve()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        with self._wake:
            self._wake.notify()
        self._thread.join()
