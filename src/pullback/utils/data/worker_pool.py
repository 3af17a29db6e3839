"""The parent's half of the worker processes: starts them, sends tasks, receives answers, notices deaths, ends them.

Each worker has two pipes of its own and shares nothing, so one that is killed cannot block another, and the end of its
pipe tells of its death at once. See Note [No orphans].
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import signal
import sys
import time
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, cast

import pullback
from pullback.utils.data.transfer import receive_parts, unpack
from pullback.utils.data.worker import Restart, Stop, WorkerSetup, run_worker

__all__ = ["WorkerPool"]

SHUTDOWN_GRACE = 5.0
"""Seconds that workers are given to finish the batch they are at, before they are terminated."""

# Note [No orphans]
# A worker ends in one of four ways, so none outlives its parent:
# 1. the pool is shut down, when an epoch is over or the iterator is dropped (a finalizer, which also runs at exit);
# 2. it is a daemon process, which multiprocessing terminates at exit;
# 3. its pipe from the parent reaches the end, because the parent died, even by SIGKILL (`worker._Inbox`);
# 4. it finds itself with another parent, should some other process hold that pipe open.


@dataclass
class _Worker:
    process: BaseProcess
    tasks: Connection
    results: Connection


class WorkerPool:
    """Worker processes of one iterator, numbered as in `setups`."""

    def __init__(self, context: BaseContext, setups: Sequence[WorkerSetup]) -> None:
        self._workers: list[_Worker] = []
        self._close = weakref.finalize(self, _end_workers, self._workers, os.getpid(), SHUTDOWN_GRACE)
        try:
            for setup in setups:
                self._workers.append(_start(context, setup, self._workers))
        except BaseException:
            self._close()
            raise

    @property
    def processes(self) -> list[BaseProcess]:
        return [worker.process for worker in self._workers]

    @property
    def is_closed(self) -> bool:
        return not self._close.alive

    def send(self, worker_id: int, number: int, index: Any) -> None:
        """Give a worker a task; that it may have died is noticed when its answer is waited for."""
        self._post(worker_id, (number, index))

    def restart(self) -> None:
        """Tell every worker that a new pass over the data begins."""
        for worker_id in range(len(self._workers)):
            self._post(worker_id, Restart())

    def _post(self, worker_id: int, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._workers[worker_id].tasks.send(message)

    def receive(self, worker_ids: Collection[int], timeout: float) -> tuple[int, int, Any]:
        """Wait for the next answer of one of the workers: `(worker_id, number, answer)`. A timeout of 0 is none.

        An interrupt ends the workers before it is passed on: they have got it as well, or a message was cut in two.
        """
        if self.is_closed:
            raise RuntimeError("the DataLoader's workers have been shut down; iterate the DataLoader again")
        try:
            return self._receive(worker_ids, timeout)
        except KeyboardInterrupt:
            self.shutdown(grace=0.0)
            raise

    def _receive(self, worker_ids: Collection[int], timeout: float) -> tuple[int, int, Any]:
        sources: dict[Any, int] = {}
        for worker_id in worker_ids:
            sources[self._workers[worker_id].results] = worker_id
            sources[self._workers[worker_id].process.sentinel] = worker_id
        ready = multiprocessing.connection.wait(list(sources), timeout or None)
        if not ready:
            self.shutdown(grace=0.0)
            raise RuntimeError(
                f"DataLoader timed out after {timeout} seconds: no batch came from worker(s) {sorted(worker_ids)}. "
                "Raise the timeout if loading a batch may take longer."
            )
        worker_id = sources[ready[0]]
        results = self._workers[worker_id].results
        try:
            parts = receive_parts(results) if results.poll() else None
        except (EOFError, OSError):
            parts = None
        if parts is None:
            raise self._explain_death(worker_id)
        number, answer = unpack(parts)
        return worker_id, number, answer

    def _explain_death(self, worker_id: int) -> RuntimeError:
        process = self._workers[worker_id].process
        process.join(SHUTDOWN_GRACE)
        pid, code = process.pid, process.exitcode
        self.shutdown(grace=0.0)
        return RuntimeError(
            f"DataLoader worker (pid {pid}) exited unexpectedly{_describe_exit(code)} "
            f"It was worker {worker_id}. Rerunning with num_workers=0 may give a better error trace."
        )

    def shutdown(self, grace: float = SHUTDOWN_GRACE) -> None:
        """End all workers and wait until they are gone; those still busy after `grace` seconds are terminated."""
        finalizer = self._close.detach()
        if finalizer is not None:
            _end_workers(self._workers, os.getpid(), grace)


def _describe_exit(code: int | None) -> str:
    if code is None or code == 0:
        return "."
    if code > 0:
        return f" with exit code {code}."
    name = next((known.name for known in signal.Signals if known == -code), str(-code))
    return f": it was killed by signal: {name}.{' (Out of memory, perhaps.)' if name == 'SIGKILL' else ''}"


def _start(context: BaseContext, setup: WorkerSetup, earlier: Sequence[_Worker]) -> _Worker:
    their_tasks, our_tasks = context.Pipe(duplex=False)
    our_results, their_results = context.Pipe(duplex=False)
    inherited: list[Connection] = []
    if context.get_start_method() == "fork":
        inherited = [end for worker in earlier for end in (worker.tasks, worker.results)]
        inherited += [our_tasks, our_results]
    # typeshed gives the contexts' Process classes no common signature.
    process: BaseProcess = cast(Any, context).Process(
        target=run_worker,
        args=(setup, their_tasks, their_results, inherited),
        name=_process_name(setup.worker_id),
        daemon=True,
    )
    try:
        process.start()
    except BaseException:
        our_tasks.close()
        our_results.close()
        raise
    finally:
        # Left open here they would be inherited by later workers, and the death of this one would go unnoticed.
        their_tasks.close()
        their_results.close()
    return _Worker(process, our_tasks, our_results)


def _end_workers(workers: list[_Worker], owner_pid: int, grace: float) -> None:
    if os.getpid() != owner_pid:
        return  # A fork's copy of the pool: the processes belong to the parent.
    for worker in workers:
        with contextlib.suppress(OSError):
            worker.tasks.send(Stop())
        worker.tasks.close()
        worker.results.close()
    _join_until(workers, time.monotonic() + grace)
    for end in ("terminate", "kill"):
        alive = [worker for worker in workers if worker.process.is_alive()]
        for worker in alive:
            getattr(worker.process, end)()
        _join_until(alive, time.monotonic() + SHUTDOWN_GRACE)


def _join_until(workers: Sequence[_Worker], deadline: float) -> None:
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))


def _process_name(worker_id: int) -> str:
    name = f"DataLoader-worker-{worker_id}"
    return _NameForTorchPrograms(name) if sys.modules.get("torch") is pullback else name


class _NameForTorchPrograms(str):
    """The name of a process that must know `torch` as pullback before it imports the main program.

    Where processes are spawned, the name is the one value of ours that is unpickled in the new process before the main
    module is imported there; unpickling this one installs the alias first.
    """

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _install_and_name, (str(self),)


def _install_and_name(name: str) -> str:
    pullback.install_as_torch()
    return name
