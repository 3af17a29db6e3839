"""RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import rmsprop_step
from pullback.optim.checks import check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    Row,
    number,
    update_functionally,
)
from pullback.tensor.tensor import Tensor

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(ElementwiseOptimizer):
    """Divide the gradient by the root of the running mean of its square, centred on its mean if asked for.

    `params` are tensors, or groups of them with options of their own. With g = grad + weight_decay * p: v = alpha * v
    + (1 - alpha) * g ** 2 and step = g / (sqrt(v) + eps), where `centered` takes the squared running mean of g from
    v; p -= lr * step, or with `momentum` b = momentum * b + step and p -= lr * b.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.RMSprop([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([5.9605e-08, 5.9605e-08])
    """

    later_options = {**ElementwiseOptimizer.later_options, "momentum": 0, "centered": False}

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_names(self, group: Group) -> Sequence[str]:
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return names

    def arrange(self, group: Group, rows: list[Row]) -> list[Row]:
        lacks_momentum = group["centered"] and not group["momentum"] > 0
        return [[*row[:3], None, row[3]] for row in rows] if lacks_momentum else rows

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        return partial(
            rmsprop_step, lr=number(group["lr"], group), alpha=group["alpha"], eps=group["eps"],
            weight_decay=group["weight_decay"], momentum=group["momentum"], maximize=group["maximize"],
        )  # fmt: skip


def rmsprop(
    params: list[Tensor], grads: list[Tensor], square_avgs: list[Tensor], grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor], state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *, lr: float, alpha: float,
    eps: float, weight_decay: float, momentum: float, centered: bool,
) -> None:  # fmt: skip
    """Do one step of RMSprop on lists; the steps are counted."""
    options = {
        "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered,
        "maximize": maximize, "differentiable": differentiable,
    }  # fmt: skip
    update_functionally(
        RMSprop, options, params, grads, square_avg=square_avgs, grad_avg=grad_avgs,
        momentum_buffer=momentum_buffer_list, step=state_steps,
    )  # fmt: skip
