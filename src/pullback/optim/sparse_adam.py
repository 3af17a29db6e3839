"""SparseAdam: Adam for sparse gradients, which moves only the rows that a gradient names."""

from __future__ import annotations

from typing import Any

from pullback.optim.checks import check_betas, check_not_negative
from pullback.optim.update import Group, GroupwiseOptimizer, zeros_like

__all__ = ["SparseAdam"]


class SparseAdam(GroupwiseOptimizer):
    """Adam whose moments decay only where a sparse gradient has entries.

    >>> import pullback
    >>> table = pullback.nn.Embedding(1000, 1, sparse=True)
    >>> optimizer = pullback.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(pullback.tensor([3])).sum().backward()
    >>> before = table.weight[3].item()
    >>> optimizer.step()
    >>> round(before - table.weight[3].item(), 4)
    0.1
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False
    ) -> None:
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _update_param(self, param: Any, grad: Any, group: Group) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        state["step"] += 1
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        rows, values = tuple(grad.indices()), grad.values()
        if group["maximize"]:
            values = -values
        first, second = group["betas"]
        mean = state["exp_avg"][rows].lerp(values, 1 - first)
        square = state["exp_avg_sq"][rows].lerp(values * values, 1 - second)
        state["exp_avg"][rows] = mean
        state["exp_avg_sq"][rows] = square
        size = group["lr"] * (1 - second ** state["step"]) ** 0.5 / (1 - first ** state["step"])
        param[rows] = param[rows] - size * mean / (square.sqrt() + group["eps"])
