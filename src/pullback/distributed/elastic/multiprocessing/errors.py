"""`record`, with which torchrun's programs mark their main function, and the file that it leaves an error in."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]


@dataclass
class ProcessFailure:
    """A process that failed."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = ""
    timestamp: int = 0

    def signal_name(self) -> str:
        """The signal that ended it, or "<N/A>"."""
        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"


class ChildFailedError(Exception):
    """Processes that were started failed. `pullback launch` shows their tracebacks and raises nothing.

    >>> str(ChildFailedError("train.py", {0: ProcessFailure(0, 1, 1, "<N/A>")}))
    'train.py FAILED: rank 0 with exit status 1'
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = failures
        told = ", ".join(f"rank {rank} with exit status {each.exitcode}" for rank, each in failures.items())
        super().__init__(f"{name} FAILED: {told}")

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]


F = TypeVar("F", bound=Callable[..., Any])


class ErrorHandler:
    """Writes what a process failed of to the file that TORCHELASTIC_ERROR_FILE names."""

    def initialize(self) -> None:
        """Do nothing: `pullback launch` shows the traceback of every rank that fails."""

    def record_exception(self, e: BaseException) -> None:
        """Write an exception to the file, if there is one to write to."""
        place = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if place is None:
            return
        told = "".join(traceback.format_exception(e))
        facts = {"py_callstack": told, "timestamp": str(int(time.time()))}
        message = {"message": f"{type(e).__name__}: {e}", "extraInfo": facts}
        Path(place).write_text(json.dumps({"message": message}))


def get_error_handler() -> ErrorHandler:
    """What `record` hands exceptions to."""
    return ErrorHandler()


def record(fn: F, error_handler: ErrorHandler | None = None) -> F:
    """Let a function leave the exception that ends it where the launcher finds it.

    >>> @record
    ... def main():
    ...     return "trained"
    >>> main()
    'trained'
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise  # the program ends as it wishes
        except BaseException as error:
            handler.record_exception(error)
            raise

    return cast(F, run)
