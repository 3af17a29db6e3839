"""SparseAdam, which needs sparse gradients; pullback has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.optim.checks import check_betas, check_not_negative
from pullback.optim.optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Accepts parameters as PyTorch's does; a step refuses dense gradients, as there."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False
    ) -> None:
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Refuse gradients, which are dense."""
        loss = closure() if closure is not None else None
        if any(param._grad is not None for group in self.param_groups for param in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return loss
