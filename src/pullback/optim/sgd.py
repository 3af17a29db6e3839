"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.kernels.optimizer_steps import sgd_step
from pullback.optim.checks import check_fused, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    State,
    number,
    update_functionally,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["SGD", "sgd"]


class SGD(ElementwiseOptimizer):
    """Step against the gradient, or against its running sum with `momentum`.

    `params` are tensors, or groups of them with options of their own. With g = grad + weight_decay * p and the buffer
    b = momentum * b + (1 - dampening) * g (g itself at first): p -= lr * b, with `nesterov` p -= lr * (g + momentum *
    b); `maximize` goes the other way. `foreach` and `fused` say how, not what, is computed.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.SGD([x], lr=0.1, momentum=0.9)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8000, 0.8000])
    """

    takes_sparse_gradients = True

    later_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: Any = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        """Whether this is the first step: the first momentum is the whole gradient, whatever the dampening."""
        if group["momentum"] == 0 or state.get("momentum_buffer") is not None:
            return False
        state["momentum_buffer"] = zeros_like(param)
        return True

    def state_names(self, group: Group) -> Sequence[str]:
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        return partial(
            sgd_step, lr=number(group["lr"], group), momentum=number(group["momentum"], group), dampening=group["dampening"],
            weight_decay=number(group["weight_decay"], group), nesterov=group["nesterov"], maximize=group["maximize"],
            is_first=bool(key),
        )  # fmt: skip


def sgd(
    params: list[Tensor], d_p_list: list[Tensor], momentum_buffer_list: list[Tensor | None], has_sparse_grad: bool = False,
    foreach: bool | None = None, fused: bool | None = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, *, weight_decay: float, momentum: float, lr: float, dampening: float, nesterov: bool,
    maximize: bool,
) -> None:  # fmt: skip
    """Do one step of SGD on lists; new momentum buffers take the place of None."""
    options = {
        "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
        "maximize": maximize,
    }  # fmt: skip
    states = update_functionally(SGD, options, params, d_p_list, momentum_buffer=momentum_buffer_list)
    momentum_buffer_list[:] = [state.get("momentum_buffer") for state in states]
