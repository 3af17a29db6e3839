"""Adadelta."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import adadelta_step
from pullback.optim.checks import check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    number,
    update_functionally,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Adadelta", "adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Scale the gradient by the ratio of the running means of past changes and past gradients.

    With g = grad + weight_decay * p: v = rho * v + (1 - rho) * g ** 2, d = g * sqrt((u + eps) / (v + eps)), u = rho * u
    + (1 - rho) * d ** 2, and p -= lr * d.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.Adadelta([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.9997, 0.9997])
    """

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon value", eps)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_names(self, group: Group) -> Sequence[str]:
        return "square_avg", "acc_delta"

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        return partial(
            adadelta_step, lr=number(group["lr"], group), rho=group["rho"], eps=group["eps"],
            weight_decay=group["weight_decay"], maximize=group["maximize"],
        )  # fmt: skip


def adadelta(
    params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor], acc_deltas: list[Tensor],
    state_steps: list[Tensor], capturable: bool = False, foreach: bool | None = None, differentiable: bool = False,
    has_complex: bool = False, *, lr: float, rho: float, eps: float, weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """Do one step of Adadelta on lists; the steps are counted."""
    options = {
        "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        "differentiable": differentiable,
    }  # fmt: skip
    update_functionally(
        Adadelta, options, params, grads, square_avg=square_avgs, acc_delta=acc_deltas, step=state_steps
    )
