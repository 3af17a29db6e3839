"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import nadam_step
from pullback.optim.checks import check_betas, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    State,
    count_step,
    kept_weight,
    new_count,
    new_number,
    number,
    update_functionally,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["NAdam", "nadam"]


def _momentum(group: Group, step: float) -> float:
    """The momentum of a step, which rises to the first of the betas."""
    return float(group["betas"][0] * (1.0 - 0.5 * (0.96 ** (step * group["momentum_decay"]))))


def _rates(lr: Any, group: Group, key: tuple[float, float]) -> tuple[Any, Any]:
    """How far a step goes along the gradient and along the momentum after it."""
    step, mu_product = key
    mu_next = _momentum(group, step + 1)
    of_grad = lr * (1.0 - _momentum(group, step)) / (1.0 - mu_product)
    return of_grad, lr * mu_next / (1.0 - mu_product * mu_next)


class NAdam(ElementwiseOptimizer):
    """Adam that steps along the gradient and the momentum after it.

    With g = grad + weight_decay * p: m and v as in Adam, mu_t = beta1 * (1 - 0.96 ** (t * momentum_decay) / 2), and p
    -= lr * (mu_{t+1} * m / (1 - mu_1 ... mu_{t+1}) + (1 - mu_t) * g / (1 - mu_1 ... mu_t)) / (sqrt(v / (1 - beta2 **
    t)) + eps).

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.NAdam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8944, 0.8944])
    """

    later_options = {**ElementwiseOptimizer.later_options, "decoupled_weight_decay": False}

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        if not state:
            state["step"] = new_count()
            state["mu_product"] = new_number(1.0)
            state["exp_avg"] = zeros_like(param)
            state["exp_avg_sq"] = zeros_like(param)
        step = count_step(state)
        state["mu_product"]._array *= _momentum(group, step)
        return step, state["mu_product"]._array.item()

    def state_names(self, group: Group) -> Sequence[str]:
        return "exp_avg", "exp_avg_sq"

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        beta1, beta2 = group["betas"]
        shrink, weight_decay = kept_weight(group)
        of_grad, of_momentum = _rates(number(group["lr"], group), group, key)
        return partial(
            nadam_step, beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=weight_decay, shrink=shrink,
            correction=1 - beta2 ** key[0], of_grad=of_grad, of_momentum=of_momentum, maximize=group["maximize"],
        )  # fmt: skip


def nadam(
    params: list[Tensor], grads: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor], state_steps: list[Tensor], decoupled_weight_decay: bool = False, foreach: bool | None = None,
    capturable: bool = False, differentiable: bool = False, has_complex: bool = False, maximize: bool = False, *,
    beta1: float, beta2: float, lr: float, weight_decay: float, momentum_decay: float, eps: float,
) -> None:  # fmt: skip
    """Do one step of NAdam on lists; the steps are counted."""
    options = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        "differentiable": differentiable, "decoupled_weight_decay": decoupled_weight_decay,
        "momentum_decay": momentum_decay,
    }  # fmt: skip
    update_functionally(
        NAdam,
        options,
        params,
        grads,
        exp_avg=exp_avgs,
        exp_avg_sq=exp_avg_sqs,
        mu_product=mu_products,
        step=state_steps,
    )
