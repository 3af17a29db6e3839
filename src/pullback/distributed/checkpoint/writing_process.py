"""A second process that writes the pieces of checkpoints: packing them does not take turns with the program's Python.

It is started once, imports what storages need and nothing of the program, and ends with the program: its input ends then.
Ranks agree in the program's own threads, since they alone belong to the process group.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from pullback.backend.naming import display_namespace
from pullback.distributed.checkpoint.filesystem import FileSystemWriter, finished_future
from pullback.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from pullback.distributed.checkpoint.planner import SavePlan, SavePlanner
from pullback.distributed.checkpoint.storage import WriteResult
from pullback.pytorch.futures import Future

__all__ = ["WritingProcess"]


class WritingProcess:
    """The process, from the side of the program."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "pullback.distributed.checkpoint.writing_process", display_namespace()]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        atexit.register(self.close)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def write(self, writer: FileSystemWriter, plan: SavePlan, values: list[Any]) -> list[WriteResult]:
        """What `writer.write_data` gives there; `values` are those of the plan's items."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None
        assert taken is not None
        try:
            pickle.dump((writer, plan, values), given, 5)
            given.flush()
            done, answer = pickle.load(taken)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            status = self._process.wait(30)
            raise RuntimeError(f"the process that writes checkpoints ended with status {status}") from error
        if not done:
            raise answer
        results: list[WriteResult]
        results, state = answer
        writer.__dict__.update(state)
        return results

    def close(self) -> None:
        """Let it end."""
        atexit.unregister(self.close)
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()


class WrittenElsewhere:
    """A storage writer whose pieces another process writes."""

    def __init__(self, writer: FileSystemWriter, process: WritingProcess) -> None:
        self._writer = writer
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        values = [planner.resolve_data(item) for item in plan.items]
        return finished_future(self._process.write(self._writer, plan, values))


def can_write(writer: Any) -> bool:
    """Whether the other process knows the storage: one of the program's own it does not."""
    return type(writer) in (FileSystemWriter, HuggingFaceStorageWriter)


class _Given:
    """Stands for the planner there."""

    def __init__(self, plan: SavePlan, values: list[Any]) -> None:
        self._values = {id(item): value for item, value in zip(plan.items, values, strict=True)}

    def resolve_data(self, item: Any) -> Any:
        return self._values[id(item)]


def _serve() -> None:
    """Write what is asked for until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.argv[1:] == ["torch"]:  # classes bear these names in what the program sends
        from pullback.pytorch.as_torch import install_as_torch  # lazy: of a higher layer, for this process alone

        install_as_torch()
    given = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what is printed is not an answer
        while True:
            try:
                writer, plan, values = pickle.load(given)
            except EOFError:
                return
            try:
                results = writer.write_data(plan, _Given(plan, values)).wait()
                answer: Any = (True, (results, writer.__dict__))
            except Exception as error:
                answer = (False, error)
            pickle.dump(answer, answers, 5)
            answers.flush()


if __name__ == "__main__":
    _serve()
