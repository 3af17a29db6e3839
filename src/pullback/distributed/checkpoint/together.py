"""Steps that all ranks take together: if one fails on some rank, it fails on all of them, with the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.distributed.checkpoint.api import CheckpointException, wrapped_failure
from pullback.distributed.object_collectives import all_gather_object
from pullback.distributed.process_group import get_rank, get_world_size, is_initialized

__all__ = ["Together"]

T = TypeVar("T")


class Together:
    """The ranks that save or load a checkpoint; one alone where no group is there or none is wanted."""

    def __init__(self, group: Any, no_dist: bool) -> None:
        self._group = group
        self._is_alone = no_dist or not is_initialized() or get_world_size(group) == 1
        self.rank = 0 if self._is_alone else get_rank(group)
        self.size = 1 if self._is_alone else get_world_size(group)

    def step(self, name: str, action: Callable[[], T]) -> list[T]:
        """What the action gives on every rank; CheckpointException everywhere if it raised on any."""
        outcome: Any = None
        failure: Any = None
        try:
            outcome = action()
        except Exception as error:
            failure = wrapped_failure(error)
        results = self._exchange((outcome, failure))
        failures = {rank: each[1] for rank, each in enumerate(results) if each[1] is not None}
        if failures:
            raise CheckpointException(name, failures) from (None if failure is None else failure[0])
        return [each[0] for each in results]

    def first(self, name: str, action: Callable[[], T]) -> T:
        """What the action gives on rank 0, which alone runs it."""
        return self.step(name, action if self.rank == 0 else lambda: None)[0]  # type: ignore[return-value]  # rank 0's

    def _exchange(self, value: Any) -> list[Any]:
        if self._is_alone:
            return [value]
        found: list[Any] = [None] * self.size
        all_gather_object(found, value, self._group)
        return found
