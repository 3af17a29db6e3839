"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import asgd_step
from pullback.optim.checks import check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    State,
    count_step,
    new_count,
    new_number,
    update_functionally,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["ASGD", "asgd"]


class ASGD(ElementwiseOptimizer):
    """Descend with a decaying rate, and keep the average of the parameters from step `t0` on in the state `ax`.

    With g = grad + weight_decay * p: p = p * (1 - lambd * eta) - eta * g, eta = lr / (1 + lambd * lr * t) ** alpha.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.ASGD([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8000, 0.8000])
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        if not state:
            state["step"] = new_count()
            state["eta"] = new_number(float(group["lr"]))
            state["mu"] = new_number(1.0)
            state["ax"] = zeros_like(param)
        return count_step(state), state["eta"]._array.item(), state["mu"]._array.item()

    def state_names(self, group: Group) -> Sequence[str]:
        return ("ax",)

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        _, eta, mu = key
        return partial(
            asgd_step, eta=eta, mu=mu, lambd=group["lambd"], weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )  # fmt: skip

    def finish(self, state: State, group: Group, key: Any) -> None:
        """Set the rate and the weight of the average for the next step, rounded even where loading made float64 of them."""
        step, lr = key[0], float(group["lr"])
        state["eta"]._array[...] = new_number(lr / ((1 + group["lambd"] * lr * step) ** group["alpha"]))._array
        state["mu"]._array[...] = new_number(1 / max(1, step - group["t0"]))._array


def asgd(
    params: list[Tensor], grads: list[Tensor], axs: list[Tensor], mus: list[Tensor], etas: list[Tensor],
    state_steps: list[Tensor], foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    capturable: bool = False, has_complex: bool = False, *, lambd: float, lr: float, t0: float, alpha: float,
    weight_decay: float,
) -> None:  # fmt: skip
    """Do one step of averaged SGD on lists; the steps are counted."""
    options = {
        "lr": lr, "lambd": lambd, "t0": t0, "alpha": alpha, "weight_decay": weight_decay, "maximize": maximize,
        "differentiable": differentiable,
    }  # fmt: skip
    update_functionally(ASGD, options, params, grads, ax=axs, mu=mus, eta=etas, step=state_steps)
