"""The thread that helps collectives along while the program computes.

MPI works on a message only while somebody calls it. A thread asks for every Work that is under way, once a millisecond:
more often would take the interpreter away from the computation (a switch costs 5 to 50 us), and large messages need only
a handful of steps. Whoever waits for a Work asks itself, as often as it can, and so does a backward pass whenever it has
made a gradient: while others ask, the thread leaves it to them (each look of its own costs 40 us of the processor, most
of it switches between threads). With nothing under way the thread sleeps and looks five
times a second whether another rank has a question.
"""

from __future__ import annotations

import threading
from typing import Any

from pullback.distributed.ledger import Ledger

__all__ = ["Progress"]

BUSY, HELPED, IDLE = 0.001, 0.01, 0.2
"""Seconds between two looks: with something under way, while others look after it, and with nothing under way."""


class Progress:
    """Polls what is under way in a thread of its own until it is stopped."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pending: list[Any] = []
        self._is_helped = False
        self._wake = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pullback-progress", daemon=True)
        self._thread.start()

    def watch(self, work: Any) -> None:
        """Help `work` along until it is done."""
        with self._wake:
            self._pending.append(work)
            self._is_helped = True  # whoever began it has asked
            self._wake.notify()

    def poll(self) -> None:
        """Help everything along once, from the calling thread: whoever asks MPI for one message moves all of them."""
        self._is_helped = True
        self._ask(1)

    def _ask(self, most: int | None = None) -> None:
        for work in self._pending[:most]:
            if work.poll():
                self._forget(work)

    def _forget(self, work: Any) -> None:
        with self._wake:
            if work in self._pending:
                self._pending.remove(work)

    def _run(self) -> None:
        looks, pause = 0, BUSY
        while not self._stopped.is_set():
            with self._wake:
                self._wake.wait(pause if self._pending else IDLE)
            pause = HELPED if self._is_helped else BUSY
            if not self._is_helped:
                self._ask()
            self._is_helped = False
            looks += 1
            if not self._pending or looks % 100 == 0:
                self._ledger.serve()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        with self._wake:
            self._wake.notify()
        self._thread.join()
