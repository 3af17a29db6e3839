"""Ledger: which collective every rank has reached, so that one that waits in vain can say for whom.

Every process counts what it enters, and a thread of it (progress.py) answers when another asks; a rank that leaves while
others wait tells them. The questions travel by MPI, in a communicator of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

__all__ = ["Ledger"]

QUESTION, ANSWER, FAREWELL = 1, 2, 3
"""The tags of the messages."""

PATIENCE = 2.0
"""Seconds that a rank has to answer: one that computes does so within a few milliseconds."""

Entry = tuple[int, str]


class Ledger:
    """What this process has entered, and what it knows of the others."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._lock = threading.Lock()
        self._sent: list[Any] = []
        self._answers: dict[int, dict[str, Entry]] = {}
        self.entered: dict[str, Entry] = {}
        self.departed: dict[int, str] = {}
        self._died = False

    def enter(self, group: str, number: int, name: str) -> None:
        """Note that this process has begun the collective `number` of a group."""
        self.entered[group] = (number, name)

    def serve(self) -> None:
        """Read what has arrived, and answer questions."""
        with self._lock:
            status = _library().Status()
            while self._comm.iprobe(status=status):
                source, tag = status.Get_source(), status.Get_tag()
                message = self._comm.recv(source=source, tag=tag)
                if tag == QUESTION:
                    self._send(self.entered, source, ANSWER)
                elif tag == ANSWER:
                    self._answers[source] = message
                else:
                    self.departed[message[0]] = message[1]
            self._sent = [request for request in self._sent if not request.Test()]

    def _send(self, message: Any, rank: int, tag: int) -> None:
        self._sent.append(self._comm.isend(message, rank, tag))

    def ask(self, ranks: Iterable[int], patience: float = PATIENCE) -> dict[int, dict[str, Entry]]:
        """What each of these ranks has entered; those that do not answer are left out."""
        wanted = [rank for rank in ranks if rank != self._comm.rank and rank not in self.departed]
        with self._lock:
            self._answers.clear()
            for rank in wanted:
                self._send(None, rank, QUESTION)
        end = time.monotonic() + patience
        while time.monotonic() < end and any(rank not in self._answers for rank in wanted):
            self.serve()
            time.sleep(0.001)
        return {rank: self._answers[rank] for rank in wanted if rank in self._answers}

    def depart(self, reason: str) -> None:
        """Tell all others that this process takes part in nothing any more."""
        with self._lock:
            for rank in range(self._comm.size):
                if rank != self._comm.rank:
                    self._send((self._comm.rank, reason), rank, FAREWELL)

    def note_departure(self, gone: int, reason: str) -> None:
        """Remember that the process of a rank has ended."""
        self.departed[gone] = reason
        self._died = True

    def leave_together(self, is_broken: bool = False, patience: float = 1.0) -> bool:
        """Wait until all processes end, and say whether one of them `is_broken` or has died.

        Those that still wait for this one are told that they do so in vain. A rank that left by itself would take the
        others with it: mpiexec ends all ranks when one ends without MPI's farewell.
        """
        any_broken = bytearray(1)
        own = bytearray([is_broken])
        library = _library()
        request = self._comm.Iallreduce([own, library.UINT8_T], [any_broken, library.UINT8_T], library.MAX)
        if is_broken:
            self.depart("its program has ended after a failed collective")
        told = is_broken
        start = time.monotonic()
        while not request.Test():
            if self._died:
                return True
            self.serve()
            time.sleep(0.0005 if not told else 0.01)
            if not told and time.monotonic() - start > patience:
                told = True
                self.depart("its program has ended")
        return any_broken[0] != 0

    def absent(self, ranks: Iterable[int], group: str, number: int) -> list[int]:
        """The ranks that have not entered collective `number` of `group`, by the last answers."""
        entered = {rank: answer.get(group, (0, ""))[0] for rank, answer in self._answers.items()}
        return [rank for rank in ranks if rank != self._comm.rank and entered.get(rank, 0) < number]

    def missing(self, ranks: Iterable[int], group: str, number: int) -> list[str]:
        """Say of every rank that has not entered collective `number` of `group` where it is."""
        ranks = list(ranks)
        answers = self.ask(ranks)
        found = []
        for rank in ranks:
            if rank == self._comm.rank:
                continue
            if rank in self.departed:
                found.append(f"rank {rank} ({self.departed[rank]})")
            elif rank not in answers:
                found.append(f"rank {rank} (it does not answer)")
            else:
                reached, name = answers[rank].get(group, (0, ""))
                if reached < number:
                    found.append(
                        f"rank {rank} (it has entered {f'{name}, number {reached},' if name else 'nothing'} so far)"
                    )
        return found


def _library() -> Any:
    from pullback.distributed.mpi import library

    return library()
