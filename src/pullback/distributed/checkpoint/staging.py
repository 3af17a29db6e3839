"""Stagers: who copies a state before it is saved in the background."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pullback.distributed.tensor.dtensor import DTensor
from pullback.tensor.tensor import Tensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


def copied(value: Any) -> Any:
    """The state with tensors of its own."""
    if isinstance(value, DTensor):
        return value.like(value._array.copy())
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: copied(part) for key, part in value.items()}
    return [copied(part) for part in value] if isinstance(value, list) else value


@runtime_checkable
class AsyncStager(Protocol):
    """What `async_save` asks of a stager: a copy, or a future of one."""

    def stage(self, state_dict: dict[str, Any]) -> Future[dict[str, Any]] | dict[str, Any]:
        """Copy the state."""
        ...


class BlockingAsyncStager:
    """Copies at once. The options are taken for PyTorch's sake.

    >>> import pullback
    >>> BlockingAsyncStager().stage({"weight": pullback.ones(1)})
    {'weight': tensor([1.])}
    """

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Copy the state."""
        made: dict[str, Any] = copied(state_dict)
        return made

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` is to be called."""
        return False

    def synchronize_staging(self) -> None:
        """Wait for the copy, which is there."""

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class StagingOptions:
    """How a DefaultStager copies: main memory has no need of most of it."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(BlockingAsyncStager):
    """Copies at once, so that the program may change its tensors, and gives a future where the options say so.

    >>> import pullback
    >>> DefaultStager().stage({"weight": pullback.ones(1)}).result()
    {'weight': tensor([1.])}
    """

    def __init__(self, config: StagingOptions | None = None) -> None:
        super().__init__()
        self.config = config or StagingOptions()

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """Copy the state."""
        made = super().stage(state_dict)
        if not self.config.use_async_staging:
            return made
        future: Future[dict[str, Any]] = Future()
        future.set_result(made)
        return future
