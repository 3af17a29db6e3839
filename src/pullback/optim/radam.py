"""RAdam: Adam that waits until the variance of its step is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import radam_step
from pullback.optim.checks import check_betas, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    kept_weight,
    number,
    update_functionally,
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
    """Adam with the variance of its first steps corrected.

    With m and v as in Adam: while the variance of the step cannot be known (r = 2 / (1 - beta2) - 1 - 2 * t * beta2 **
    t / (1 - beta2 ** t) <= 5) p -= lr * m / (1 - beta1 ** t); then Adam's step, times a factor that grows towards 1.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.RAdam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8000, 0.8000])
    """

    later_options = {**ElementwiseOptimizer.later_options, "decoupled_weight_decay": False}

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

    def state_names(self, group: Group) -> Sequence[str]:
        return "exp_avg", "exp_avg_sq"

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        beta1, beta2 = group["betas"]
        shrink, weight_decay = kept_weight(group)
        rectification = _rectification(beta2, key)
        return partial(
            radam_step, lr=number(group["lr"], group), beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=weight_decay,
            shrink=shrink, correction=1 - beta1**key, root_correction=math.sqrt(1 - beta2**key),
            rectification=rectification or 0.0, is_rectified=rectification is not None, maximize=group["maximize"],
        )  # fmt: skip


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
