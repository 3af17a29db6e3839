"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import adamax_step
from pullback.optim.checks import check_betas, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    number,
    update_functionally,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Adamax", "adamax"]


class Adamax(ElementwiseOptimizer):
    """Step along the running mean of the gradient, divided by its decaying maximum.

    With g = grad + weight_decay * p: m = beta1 * m + (1 - beta1) * g, u = max(beta2 * u, |g| + eps), and after t steps
    p -= lr / (1 - beta1 ** t) * m / u.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.Adamax([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_names(self, group: Group) -> Sequence[str]:
        return "exp_avg", "exp_inf"

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        beta1, beta2 = group["betas"]
        return partial(
            adamax_step, beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=group["weight_decay"],
            step_size=number(group["lr"], group) / (1 - beta1**key), maximize=group["maximize"],
        )  # fmt: skip


def adamax(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_infs: list[Tensor], state_steps: list[Tensor],
    foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    has_complex: bool = False, *, eps: float, beta1: float, beta2: float, lr: float, weight_decay: float,
) -> None:  # fmt: skip
    """Do one step of Adamax on lists; the steps are counted."""
    options = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        "differentiable": differentiable,
    }  # fmt: skip
    update_functionally(Adamax, options, params, grads, exp_avg=exp_avgs, exp_inf=exp_infs, step=state_steps)
