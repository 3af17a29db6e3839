"""Files that are there whole or not at all: written beside their place, and moved to it when they are complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["replaced_when_written"]


@contextmanager
def replaced_when_written(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing whose former content stays until the new one is complete, whatever happens.

    A full disk, or a process that is killed, leaves the former checkpoint as it was. What is not a regular file (a pipe, a
    device), and what lies in a folder that cannot be written to, is written directly.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint")
    >>> with replaced_when_written(path) as file:
    ...     _ = file.write(b"weights")
    >>> os.path.getsize(path)
    7
    """
    target = os.path.realpath(path)
    exists = os.path.exists(target)
    if (exists and not os.path.isfile(target)) or not os.access(os.path.dirname(target), os.W_OK):
        with open(target, "wb") as direct:
            yield direct
        return
    if exists and not os.access(target, os.W_OK):
        open(target, "r+b").close()  # raises what writing to it would
    beside = f"{target}.{os.getpid()}.partial"
    try:
        with open(beside, "wb") as file:
            yield file
        if exists:
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.remove(beside)
        raise
