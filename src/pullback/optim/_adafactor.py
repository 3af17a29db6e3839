"""Adafactor: Adam whose second moments are kept as rows times columns."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.backend.dtype import finfo
from pullback.optim.update import (
    Group,
    GroupwiseOptimizer,
    State,
    count_step,
    new_count,
    set_defaults,
    sparse_gradient,
    zeros_like,
)
from pullback.tensor.tensor import Tensor

__all__ = ["Adafactor"]


class Adafactor(GroupwiseOptimizer):
    """An adaptive method that needs little memory; the step is relative to the size of the parameter."""

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: Any = (None, 1e-3), d: float = 1.0,
        weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        set_defaults(self, foreach=None)

    def _make_state(self, param: Any, grad: Any) -> State:
        if param.dtype.is_complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        if grad.dim() > 1:
            rows, columns = list(grad.shape), list(grad.shape)
            rows[-1] = columns[-2] = 1
            return {"step": new_count(), "row_var": grad.new_zeros(rows), "col_var": grad.new_zeros(columns)}
        return {"step": new_count(), "variance": zeros_like(grad)}

    def _update_param(self, param: Any, grad: Any, group: Group) -> None:
        if grad.is_sparse:
            raise sparse_gradient("Adafactor")
        state = self.state[param]
        if not state:
            state.update(self._make_state(param, grad))
        step, lr = count_step(state), float(group["lr"])
        smallest = group["eps"][0] if group["eps"][0] is not None else finfo(param.dtype).eps
        grad = -grad if group["maximize"] else grad
        size = param.norm(2).item() / param.numel() ** 0.5
        rate = max(group["eps"][1], size) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        variance = _estimate_variance(state, grad, step ** group["beta2_decay"], smallest)
        update = variance.clamp_(min=smallest * smallest).rsqrt_().mul_(grad)
        clipping = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=-rate / clipping)


def _estimate_variance(state: State, grad: Any, weight: float, smallest: float) -> Any:
    """Update the second moments and return the variance that they stand for, a tensor of its own."""
    square = grad * grad
    if grad.dim() <= 1:
        return state["variance"].lerp_(square, weight).clone()
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(square.mean(-1, keepdim=True), weight)
    columns.lerp_(square.mean(-2, keepdim=True), weight)
    return rows / functions.clamp(rows.mean(-2, keepdim=True), min=smallest) @ columns
