"""Rprop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback import creation
from pullback.kernels.optimizer_steps import rprop_step
from pullback.optim.checks import check_lr
from pullback.optim.update import (
    ElementwiseOptimizer,
    Group,
    State,
    count_step,
    new_count,
    update_functionally,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Rprop", "rprop"]


class Rprop(ElementwiseOptimizer):
    """Step by sizes that grow while the sign of the gradient stays and shrink when it changes.

    A step size for each element is multiplied by etas[1] where the sign of the gradient stayed and by etas[0] where it
    changed (where nothing is done), within `step_sizes`; p -= sign(grad) * step size.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> optimizer = pullback.optim.Rprop([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-6, 50), *,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        if not state:
            lr = float(group["lr"])
            state["step"] = new_count()
            state["prev"] = zeros_like(param)
            size: Any = complex(lr, lr) if param.dtype.is_complex else lr
            state["step_size"] = creation.full_like(param.detach(), size)
        count_step(state)
        return None

    def state_names(self, group: Group) -> Sequence[str]:
        return "prev", "step_size"

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        shrink, grow = group["etas"]
        smallest, largest = group["step_sizes"]
        return partial(
            rprop_step, shrink=shrink, grow=grow, smallest=smallest, largest=largest, maximize=group["maximize"]
        )


def rprop(
    params: list[Tensor], grads: list[Tensor], prevs: list[Tensor], step_sizes: list[Tensor], state_steps: list[Tensor],
    foreach: bool | None = None, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    has_complex: bool = False, *, step_size_min: float, step_size_max: float, etaminus: float, etaplus: float,
) -> None:  # fmt: skip
    """Do one step of Rprop on lists; the steps are counted."""
    options = {
        "etas": (etaminus, etaplus), "step_sizes": (step_size_min, step_size_max), "maximize": maximize,
        "differentiable": differentiable,
    }  # fmt: skip
    update_functionally(Rprop, options, params, grads, prev=prevs, step_size=step_sizes, step=state_steps)
