"""RAdam: Adam that waits until the variance of its step is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pullback.functions as F
from pullback.kernels.optimizer_steps import radam_step
from pullback.optim.checks import check_betas, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    Row,
    Rule,
    State,
    count_step,
    hyperparameter,
    kept_weight,
    new_count,
    number,
    set_defaults,
    update_functionally,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["RAdam", "radam"]


def _rectification(beta2: float, step: float) -> float | None:
    """The factor that corrects the variance of the adaptive step; None while it is not tractable."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5.0:
        return None
    return math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))


class RAdam(ElementwiseOptimizer):
    """Adam with the variance of its first steps corrected."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        set_defaults(
            self, foreach=None, maximize=False, differentiable=False, decoupled_weight_decay=False, capturable=False
        )

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        if not state:
            state["step"] = new_count()
            state["exp_avg"] = zeros_like(param)
            state["exp_avg_sq"] = zeros_like(param)
        return count_step(state)

    def state_names(self, group: Group) -> Sequence[str]:
        return "exp_avg", "exp_avg_sq"

    def in_place_step(self, group: Group, key: Any) -> Callable[[list[Row]], None]:
        beta1, beta2 = group["betas"]
        shrink, weight_decay = kept_weight(group)
        rectification = _rectification(beta2, key)
        return partial(
            radam_step, lr=number(group["lr"]), beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=weight_decay,
            shrink=shrink, correction=1 - beta1**key, root_correction=math.sqrt(1 - beta2**key),
            rectification=rectification or 0.0, is_rectified=rectification is not None, maximize=group["maximize"],
        )  # fmt: skip

    def rule(self, group: Group, key: Any) -> Rule:
        lr, eps, weight_decay = hyperparameter(group, "lr"), group["eps"], group["weight_decay"]
        beta1, beta2 = group["betas"]
        correction = 1 - beta1**key
        rectification = _rectification(beta2, key)
        root_correction = math.sqrt(1 - beta2**key)

        def descend(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any) -> Sequence[Any]:
            if group["maximize"]:
                grad = -grad
            if weight_decay != 0:
                if group["decoupled_weight_decay"]:
                    param = param * (1 - lr * weight_decay)
                else:
                    grad = grad + param * weight_decay
            exp_avg = exp_avg + (grad - exp_avg) * (1 - beta1)
            exp_avg_sq = exp_avg_sq * beta2 + grad * grad * (1 - beta2)
            change = exp_avg / correction * lr
            if rectification is not None:
                change = change * (root_correction / (F.sqrt(exp_avg_sq) + eps)) * rectification
            return param - change, exp_avg, exp_avg_sq

        return descend


def radam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor], decoupled_weight_decay: bool = False, foreach: bool | None = None,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, maximize: bool = False, *,
    beta1: float, beta2: float, lr: float, weight_decay: float, eps: float,
) -> None:  # fmt: skip
    """Do one step of RAdam on lists; the steps are counted."""
    options = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        "differentiable": differentiable, "decoupled_weight_decay": decoupled_weight_decay,
    }  # fmt: skip
    update_functionally(RAdam, options, params, grads, exp_avg=exp_avgs, exp_avg_sq=exp_avg_sqs, step=state_steps)
