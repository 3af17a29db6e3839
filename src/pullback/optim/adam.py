"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import adam_step
from pullback.optim.checks import check_betas, check_fused, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    kept_weight,
    number,
    update_functionally,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Adam", "AdamW", "adam"]


def square_root(value: Any) -> Any:
    """The square root of a number or of a tensor."""
    return value**0.5 if isinstance(value, Tensor) else math.sqrt(value)


class Adam(ElementwiseOptimizer):
    """Step along the running mean of the gradient, divided by the root of the running mean of its square.

    `params` are tensors, or groups of them with options of their own. With g = grad + weight_decay * p: m = beta1 * m
    + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g ** 2, and after t steps p -= lr * (m / (1 - beta1 ** t)) /
    (sqrt(v / (1 - beta2 ** t)) + eps). `amsgrad` divides by the largest v so far.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.Adam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.9000, 0.9000])
    """

    later_options = {
        **ElementwiseOptimizer.later_options,
        "amsgrad": False,
        "fused": None,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr, foreach=foreach, capturable=capturable)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_names(self, group: Group) -> Sequence[str]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        beta1, beta2 = number(group["betas"][0], group), number(group["betas"][1], group)
        shrink, weight_decay = kept_weight(group)
        return partial(
            adam_step, beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=weight_decay, shrink=shrink,
            root_correction=square_root(1 - beta2**key), step_size=number(group["lr"], group) / (1 - beta1**key),
            maximize=group["maximize"],
        )  # fmt: skip


class AdamW(Adam):
    """Adam with weight decay apart from the gradient.

    Each step does p *= 1 - lr * weight_decay, then what `Adam` does without decay; its arguments are the same, with
    weight_decay 0.01 unless given.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.AdamW([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8990, 0.8990])
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
        amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None, capturable: bool = False,
    differentiable: bool = False, fused: bool | None = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, decoupled_weight_decay: bool = False, *, amsgrad: bool,
    beta1: Any, beta2: Any, lr: Any, weight_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """Do one step of Adam on lists; the steps are counted."""
    options = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
        "maximize": maximize, "differentiable": differentiable, "decoupled_weight_decay": decoupled_weight_decay,
    }  # fmt: skip
    update_functionally(
        Adam, options, params, grads, exp_avg=exp_avgs, exp_avg_sq=exp_avg_sqs, max_exp_avg_sq=max_exp_avg_sqs,
        step=state_steps,
    )  # fmt: skip
