"""Adadelta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pullback.functions as F
from pullback.kernels.optimizer_steps import adadelta_step
from pullback.optim.checks import check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    Row,
    Rule,
    State,
    count_step,
    hyperparameter,
    new_count,
    number,
    plain_gradient,
    set_defaults,
    update_functionally,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Adadelta", "adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Scale the gradient by the ratio of the running means of past changes and past gradients."""

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        set_defaults(self, foreach=None, maximize=False, differentiable=False, capturable=False)

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        if not state:
            state["step"] = new_count()
            state["square_avg"] = zeros_like(param)
            state["acc_delta"] = zeros_like(param)
        count_step(state)
        return None

    def state_names(self, group: Group) -> Sequence[str]:
        return "square_avg", "acc_delta"

    def in_place_step(self, group: Group, key: Any) -> Callable[[list[Row]], None]:
        return partial(
            adadelta_step, lr=number(group["lr"]), rho=group["rho"], eps=group["eps"],
            weight_decay=group["weight_decay"], maximize=group["maximize"],
        )  # fmt: skip

    def rule(self, group: Group, key: Any) -> Rule:
        lr, rho, eps = hyperparameter(group, "lr"), group["rho"], group["eps"]

        def descend(param: Any, grad: Any, square_avg: Any, acc_delta: Any) -> Sequence[Any]:
            grad = plain_gradient(grad, param, group)
            square_avg = square_avg * rho + grad * grad * (1 - rho)
            delta = F.sqrt(acc_delta + eps) / F.sqrt(square_avg + eps) * grad
            acc_delta = acc_delta * rho + delta * delta * (1 - rho)
            return param - delta * lr, square_avg, acc_delta

        return descend


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
