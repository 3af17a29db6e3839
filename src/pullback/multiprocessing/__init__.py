"""Python's multiprocessing with tensors, whose memory is shared with the process that they are sent to."""

from __future__ import annotations

import multiprocessing as _multiprocessing
from typing import Any

from pullback.multiprocessing.process_context import ProcessContext as ProcessContext
from pullback.multiprocessing.process_context import ProcessExitedException as ProcessExitedException
from pullback.multiprocessing.process_context import ProcessRaisedException as ProcessRaisedException
from pullback.multiprocessing.process_context import SpawnContext as SpawnContext
from pullback.multiprocessing.process_context import spawn as spawn
from pullback.multiprocessing.process_context import start_processes as start_processes
from pullback.multiprocessing.reductions import init_reductions

init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors reach another process."""
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The way in which tensors reach another process."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: memory is always shared by file descriptors."""


def __getattr__(name: str) -> Any:
    return getattr(_multiprocessing, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_multiprocessing.__all__})
