"""Work: a collective under way, PyTorch's handle for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pullback.distributed.communicator import Request
from pullback.distributed.errors import DistBackendError
from pullback.pytorch.futures import Future

if TYPE_CHECKING:
    from pullback.distributed.process_group import ProcessGroup

__all__ = ["Work"]

SPIN = 0.0003
"""Seconds of asking without a pause: small messages take some 10 us, and the shortest sleep takes 100."""


class Work:
    """What an asynchronous collective returns; the result is in its tensors after `wait()`.

    >>> import pullback.distributed as dist
    >>> from pullback import ones
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> work = dist.all_reduce(ones(2), async_op=True)
    >>> work.wait(), work.get_future().wait()
    (True, [tensor([1., 1.])])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, group: ProcessGroup, name: str, number: int, requests: Sequence[Request],
        finish: Callable[[], None] | None = None, result: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self._group = group
        self._name = name
        self._number = number
        self._requests = list(requests)
        self._finish = finish
        self._result = list(result)
        self._source = -1
        self.limit: timedelta | None = None
        self._lock = threading.RLock()
        self._error: BaseException | None = None
        self._done = False
        self._future: Future[list[Any]] | None = None

    def poll(self) -> bool:
        """Help it along and say whether it is done; never raises."""
        if self._done:
            return True
        if not self._lock.acquire(blocking=False):
            return False  # another thread is at it
        try:
            if not self._done:
                self._advance()
            return self._done
        finally:
            self._lock.release()

    def _advance(self) -> None:
        try:
            while self._requests:
                request = self._requests[0]
                if not request.is_done():
                    return
                self._source = request.source()
                self._requests.pop(0)
            if self._finish is not None:
                self._finish()
        except Exception as error:
            self._error = error
        self._settle()

    def _settle(self) -> None:
        self._finish = None
        self._done = True
        if self._future is not None:
            self._tell(self._future)

    def _tell(self, future: Future[list[Any]]) -> None:
        if isinstance(self._error, Exception):
            future.set_exception(self._error)
        else:
            future.set_result(self._result)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done and raise what went wrong.

        After `timeout`, or else the call's or the group's, an error names the ranks that did not take part.
        """
        limit = (timeout or self.limit or self._group.timeout).total_seconds()
        start = time.monotonic()
        looked = start
        while not self.poll():
            now = time.monotonic()
            if now - start < SPIN:
                continue
            time.sleep(min((now - start) / 8, 0.001))  # each look takes 10 us of the processor from other ranks
            if now - looked > 0.5:
                looked = now
                self._look_for_the_departed()
            if now - start > limit:
                self._fail(self._timed_out(limit))
        if self._error is not None:
            raise self._error
        return True

    def _fail(self, error: DistBackendError) -> None:
        with self._lock:
            if not self._done:
                self._group.keep(self._requests, self._finish)
                self._requests = []
                self._error = error
                self._settle()

    def _look_for_the_departed(self) -> None:
        ledger = self._group.ledger
        if ledger is None:
            return
        ledger.serve()
        gone = [rank for rank in self._group.ranks if rank in ledger.departed]
        if gone:
            reasons = "; ".join(f"rank {rank}: {ledger.departed[rank]}" for rank in gone)
            self._fail(
                DistBackendError(
                    f"Connection closed by peer: {self._said()} cannot complete, since {reasons}. Every rank of a group "
                    "must take part in each of its collectives."
                )
            )

    def _said(self) -> str:
        return f"{self._name} (number {self._number} of group '{self._group.group_name}')"

    def _timed_out(self, limit: float) -> DistBackendError:
        ledger = self._group.ledger
        missing = [] if ledger is None else ledger.missing(self._group.ranks, self._group.group_name, self._number)
        if missing:
            cause = f"still missing: {', '.join(missing)}"
        else:
            cause = "every rank has entered it, and the messages were not delivered in time"
        return DistBackendError(
            f"Timed out waiting {round(limit * 1000)}ms for {self._said()} to complete on rank {self._group.global_rank()}; "
            f"{cause}. Pass a longer timeout to init_process_group or new_group if a rank may be this slow."
        )

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self.poll()

    def is_success(self) -> bool:
        """Whether it is done and nothing went wrong."""
        return self.poll() and self._error is None

    def exception(self) -> BaseException | None:
        """What went wrong, None if nothing did."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that hold the result."""
        return self._result

    def source_rank(self) -> int:
        """The rank whose message was received."""
        return self._group.ranks[self._source]

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Wait until it is done."""
        self.wait()

    block_current_stream = synchronize

    def get_future(self) -> Future[list[Any]]:
        """A future of the tensors that hold the result."""
        with self._lock:
            if self._future is None:
                self._future = Future()
                if self._done:
                    self._tell(self._future)
                else:
                    self._group.watch(self)
            return self._future
