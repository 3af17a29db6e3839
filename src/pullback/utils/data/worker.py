"""What runs in a worker process of a DataLoader: take a task, fetch the batch, send it back, until told to stop.

The parent's half is `worker_pool.py`. Nothing here is imported by a dataset except `get_worker_info`.
"""

from __future__ import annotations

import os
import pickle
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pullback
from pullback.backend import numpy_objects
from pullback.utils.data.datapipes.datapipe import IterDataPipe
from pullback.utils.data.datapipes.settings import apply_sharding
from pullback.utils.data.exception_wrapper import ExceptionWrapper
from pullback.utils.data.fetch import DatasetKind, Fetcher
from pullback.utils.data.transfer import pack, send_parts

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["EndOfStream", "Restart", "Stop", "WorkerInfo", "WorkerSetup", "get_worker_info", "run_worker"]

PARENT_CHECK_INTERVAL = 5.0
"""Seconds between two looks at whether the parent still lives, for the case that its pipe is held open elsewhere."""


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows about itself: its number, how many there are, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


@dataclass
class WorkerSetup:
    """All that a worker process is started with; it travels by pickling where processes are not forked."""

    worker_id: int
    num_workers: int
    base_seed: int
    dataset: Any
    dataset_kind: int
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    init_fn: Callable[[int], None] | None

    @property
    def seed(self) -> int:
        return self.base_seed + self.worker_id

    def create_fetcher(self) -> Fetcher:
        return DatasetKind.create_fetcher(
            self.dataset_kind, self.dataset, self.auto_collation, self.collate_fn, self.drop_last
        )


@dataclass(frozen=True)
class Stop:
    """Tells a worker to end."""


@dataclass(frozen=True)
class Restart:
    """Tells a worker that a new pass over the data begins."""


@dataclass(frozen=True)
class EndOfStream:
    """A worker's answer when its iterable dataset has no more samples."""


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what this worker process knows about itself; None in the main process."""
    return _worker_info


def run_worker(setup: WorkerSetup, tasks: Connection, results: Connection, inherited: list[Connection]) -> None:
    """Serve tasks `(number, index)` from `tasks` until told to stop; answer `(number, batch)` on `results`.

    `inherited` are the parent's ends of pipes that came along in a fork: open here, they would hide the parent's end.
    """
    for connection in inherited:
        connection.close()
    inbox, outbox = _Inbox(tasks), _Outbox(results)
    try:
        _serve(setup, inbox, outbox)
    except KeyboardInterrupt:
        pass  # The interrupt goes to the whole process group; the parent is the one that reports it.
    except BaseException:
        outbox.flush()
        raise


def _serve(setup: WorkerSetup, inbox: _Inbox, outbox: _Outbox) -> None:
    failure: ExceptionWrapper | None = None
    fetcher: Fetcher | None = None
    where = f"in DataLoader worker process {setup.worker_id}"
    try:
        _prepare_process(setup)
        fetcher = setup.create_fetcher()
    except Exception as error:
        failure = ExceptionWrapper(error, where)
    while True:
        message = inbox.take()
        if inbox.stopped.is_set():
            return
        if isinstance(message, Restart):
            try:
                fetcher, failure = setup.create_fetcher(), None
            except Exception as error:
                failure = ExceptionWrapper(error, where)
            continue
        number, index = message
        if failure is not None or fetcher is None:
            outbox.put(number, failure, where)
            continue
        answer = _fetch(fetcher, index, setup.dataset_kind, where)
        outbox.put(number, answer, where)


def _prepare_process(setup: WorkerSetup) -> None:
    global _worker_info
    # One thread each: the parallelism is in the processes, and threads of the parent do not survive a fork.
    pullback.set_num_threads(1)
    random.seed(setup.seed)
    pullback.manual_seed(setup.seed)
    numpy_objects.seed_worker_generator(setup.base_seed, setup.worker_id)
    _worker_info = WorkerInfo(setup.worker_id, setup.num_workers, setup.seed, setup.dataset)
    if isinstance(setup.dataset, IterDataPipe):
        apply_sharding(setup.dataset, setup.num_workers, setup.worker_id)
    if setup.init_fn is not None:
        setup.init_fn(setup.worker_id)


def _fetch(fetcher: Fetcher, index: Any, kind: int, where: str) -> Any:
    try:
        return fetcher.fetch(index)
    except Exception as error:
        if isinstance(error, StopIteration) and kind == DatasetKind.Iterable:
            return EndOfStream()
        return ExceptionWrapper(error, where)


class _Inbox:
    """Reads messages in a thread of its own, so that the parent never waits for a busy worker to take one."""

    def __init__(self, connection: Connection) -> None:
        self.stopped = threading.Event()
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._connection = connection
        threading.Thread(target=self._read, name="tasks", daemon=True).start()

    def take(self) -> Any:
        return self._messages.get()

    def _read(self) -> None:
        parent = os.getppid()
        try:
            while not self.stopped.is_set():
                if self._connection.poll(PARENT_CHECK_INTERVAL):
                    self._accept(self._connection.recv())
                elif os.getppid() != parent:
                    break
        except (EOFError, OSError):
            pass
        if not self.stopped.is_set():
            os._exit(1)  # The parent died without a word: a worker in the middle of a batch must not outlive it.

    def _accept(self, message: Any) -> None:
        if isinstance(message, Stop):
            self.stopped.set()
        self._messages.put(message)


class _Outbox:
    """Writes answers in a thread of its own, so that the worker goes on while the parent is busy elsewhere."""

    def __init__(self, connection: Connection) -> None:
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._connection = connection
        self._thread = threading.Thread(target=self._write, name="results", daemon=True)
        self._thread.start()

    def put(self, number: int, answer: Any, where: str) -> None:
        """Send an answer; one that cannot be pickled is replaced by the error that says so."""
        try:
            parts = pack((number, answer))
        except Exception as error:
            parts = pack((number, _unpicklable(answer, error, where)))
        self._messages.put(parts)

    def flush(self) -> None:
        """Wait until everything is written or the parent has stopped reading."""
        self._messages.put(None)
        self._thread.join(PARENT_CHECK_INTERVAL)

    def _write(self) -> None:
        try:
            while (parts := self._messages.get()) is not None:
                send_parts(self._connection, parts)
        except OSError:
            pass  # The parent has closed its end: nobody wants the answers.


def _unpicklable(answer: Any, error: Exception, where: str) -> ExceptionWrapper:
    if isinstance(answer, ExceptionWrapper):
        answer.exc_type = RuntimeError  # The type is what could not be pickled; the text still tells it.
        return answer
    explained = pickle.PicklingError(f"The batch cannot be sent to the main process: {error}")
    explained.__cause__ = error
    return ExceptionWrapper(explained, where)
