"""RowLevel: the level at which rows of a Jacobian run as a batch. See Note [Batched rows]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.func.vmap_level import VmapLevel
from pullback.modes.grad_mode import set_grad_mode


class RowLevel(VmapLevel):
    """A vmap over gradients that refuses what has no batching rule, and records only if the gradients' graph is wanted."""

    loops = False

    def __init__(self, batch_size: int, *, recorded: bool) -> None:
        super().__init__(batch_size, "error")
        self.recorded = recorded

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        former = set_grad_mode(self.recorded)
        try:
            return super().__call__(function, args, kwargs)
        finally:
            set_grad_mode(former)
