"""CheckpointException: what went wrong on which ranks."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Raised on every rank if saving or loading failed on some. As in PyTorch, `except Exception` does not catch it.

    >>> error = CheckpointException("save", {1: wrapped_failure(OSError("disk full"))})
    >>> print(error)
    CheckpointException ranks: [1]
    rank 1: OSError: disk full
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """By rank, the error and where it was raised."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks: {sorted(self._failures)}"]
        lines += [
            f"rank {rank}: {type(error).__name__}: {error}" for rank, (error, _) in sorted(self._failures.items())
        ]
        return "\n".join(lines)


def wrapped_failure(error: BaseException) -> tuple[BaseException, traceback.StackSummary]:
    """An error and where it was raised, as it travels between ranks."""
    return error, traceback.extract_tb(error.__traceback__)
