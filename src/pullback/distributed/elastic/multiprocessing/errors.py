"""`record`, with which torchrun's programs mark their main function, and the file that it leaves an error in."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["ErrorHandler", "get_error_handler", "record"]

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
