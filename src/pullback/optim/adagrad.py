"""Adagrad."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback import creation
from pullback.kernels.optimizer_steps import adagrad_step
from pullback.optim.checks import check_fused, check_lr, check_not_negative
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    State,
    count_step,
    new_count,
    number,
    update_functionally,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Adagrad", "adagrad"]


class Adagrad(ElementwiseOptimizer):
    """Divide the gradient by the root of the sum of its squares so far.

    With g = grad + weight_decay * p: s = s + g ** 2, and after t steps p -= lr / (1 + (t - 1) * lr_decay) * g /
    (sqrt(s) + eps).

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.Adagrad([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.9000, 0.9000])
    """

    takes_sparse_gradients = True

    later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self._make_state(self.state[param], param, group)

    def check_sparse(self, group: Group) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    @staticmethod
    def _make_state(state: State, param: Any, group: Group) -> None:
        start: Any = group["initial_accumulator_value"]
        state["step"] = new_count()
        state["sum"] = creation.full_like(param.detach(), complex(start, start) if param.dtype.is_complex else start)

    def share_memory(self) -> None:
        """Move the state to shared memory."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        if not state:
            self._make_state(state, param, group)
        return count_step(state)

    def state_names(self, group: Group) -> Sequence[str]:
        return ("sum",)

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        rate = number(group["lr"], group) / (1 + (key - 1) * group["lr_decay"])
        return partial(
            adagrad_step, lr=rate, eps=group["eps"], weight_decay=group["weight_decay"], maximize=group["maximize"]
        )


def adagrad(
    params: list[Tensor], grads: list[Tensor], state_sums: list[Tensor], state_steps: list[Tensor],
    fused: bool | None = None, grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
    has_sparse_grad: bool = False, foreach: bool | None = None, differentiable: bool = False, has_complex: bool = False,
    *, lr: float, weight_decay: float, lr_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """Do one step of Adagrad on lists; the steps are counted."""
    options = {
        "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        "differentiable": differentiable,
    }  # fmt: skip
    update_functionally(Adagrad, options, params, grads, sum=state_sums, step=state_steps)
