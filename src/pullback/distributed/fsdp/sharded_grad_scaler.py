"""ShardedGradScaler: a GradScaler for parameters of which every rank holds a part."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.amp.grad_scaler import GradScaler
from pullback.distributed import collectives
from pullback.distributed.reduce_operation import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """Scales losses; a step is left out on all ranks if the gradients of one of them are infinite or NaN.

    >>> ShardedGradScaler(device="cpu", init_scale=4.0).scale(pullback.tensor(2.0))
    tensor(8.)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5, growth_factor: float = 2.0,
        growth_interval: int = 2000, enabled: bool = True, process_group: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale. All ranks must call it."""
        super().unscale_(optimizer)
        if self._enabled:
            state, is_finite = self._states[id(optimizer)]
            agreed = pullback.tensor(int(is_finite))
            collectives.all_reduce(agreed, ReduceOp.MIN, self.process_group)
            self._states[id(optimizer)] = (state, bool(agreed.item()))
