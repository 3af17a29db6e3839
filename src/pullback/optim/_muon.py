"""Muon: momentum whose matrices are made orthogonal by Newton and Schulz's iteration."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.backend.dtype import bfloat16
from pullback.kernels.orthogonalization import newton_schulz
from pullback.optim.update import Group, GroupwiseOptimizer, zeros_like
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["Muon"]


def _orthogonalized(matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """A matrix with about the same singular vectors and singular values near one."""
    if matrix.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    x = matrix.to(bfloat16)
    is_tall = matrix.size(0) > matrix.size(1)
    x = x.T if is_tall else x
    x = x / functions.clamp(x.norm(), min=eps)
    x = new_tensor(newton_schulz(x.contiguous()._array, coefficients, steps))
    return x.T if is_tall else x


class Muon(GroupwiseOptimizer):
    """Orthogonal updates of the matrices of hidden layers; other parameters need another optimizer.

    With m the running mean of gradients (Nesterov's, if so asked), the step goes along the nearest matrix to m with all
    singular values 1, found by `ns_steps` Newton-Schulz iterations; `weight_decay` is decoupled, as in AdamW.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _update_param(self, param: Any, grad: Any, group: Group) -> None:
        if param.dtype.is_complex:
            raise RuntimeError("Muon does not support complex parameters")
        state = self.state[param]
        if not state:
            state["momentum_buffer"] = zeros_like(grad)
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - group["momentum"])
        direction = functions.lerp(grad, buffer, group["momentum"]) if group["nesterov"] else buffer
        update = _orthogonalized(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1, rows / columns))
        param.mul_(1 - group["lr"] * group["weight_decay"])
        param.add_(update.to(param.dtype), alpha=-group["lr"] * ratio)
