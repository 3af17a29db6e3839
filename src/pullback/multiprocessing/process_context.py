"""`multiprocessing.spawn` and `start_processes`: several processes that run one function, and end together."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import Any


class ProcessException(Exception):
    """One of the processes has failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid


class ProcessRaisedException(ProcessException):
    """The function raised in one of the processes: the message has its traceback."""


class ProcessExitedException(ProcessException):
    """One of the processes was killed, or exited by itself."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], failures: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        failures.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes that run; `join` waits for them, and raises here what was raised there."""

    def __init__(self, processes: list[Any], failures: list[Any]) -> None:
        self.processes = processes
        self._failures = failures
        self._waiting = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends; whether all have. If one failed, end the others and raise."""
        if not self._waiting:
            return True
        failed = None
        for sentinel in connection.wait(list(self._waiting), timeout=timeout):
            index = self._waiting.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self._waiting
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join(grace_period)
        raise self._failure(failed)

    def _failure(self, index: int) -> ProcessException:
        process, failures = self.processes[index], self._failures[index]
        if not failures.empty():
            text = f"\n\n-- Process {index} terminated with the following error:\n{failures.get()}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run `fn(index, *args)` in `nprocs` processes; wait for them, unless `join` is False."""
    context: Any = multiprocessing.get_context(start_method)
    processes, failures = [], []
    for index in range(nprocs):
        failure = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, failure), daemon=daemon)
        process.start()
        processes.append(process)
        failures.append(failure)
    started = ProcessContext(processes, failures)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run `fn(index, *args)` in `nprocs` spawned processes."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
