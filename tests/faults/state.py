"""What a fault must leave as it was: switches and counts of the thread and the process, and tensors."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.engine.passes import running
from pullback.modes.switches import process, switches
from pullback.nn.modules.module_hooks import GlobalHooks


def switches_now() -> dict[str, Any]:
    """Every switch of this thread, every count of the process."""
    found = {f"switches.{name}": value for name, value in vars(switches).items() if name != "absence"}
    found |= {f"process.{name}": getattr(process, name) for name in ("changed", "diverted", "finishing", "modes")}
    found |= {
        "the running pass": running.task,
        "passes": process.passes,
        "is_grad_enabled": pullback.is_grad_enabled(),
        "autocast": (pullback.is_autocast_enabled("cpu"), pullback.get_autocast_dtype("cpu")),
        "default dtype": pullback.get_default_dtype(),
        "default device": pullback.get_default_device(),
        "anomaly": pullback.is_anomaly_enabled(),
        "deterministic": pullback.are_deterministic_algorithms_enabled(),
        "hooks of all modules": (len(GlobalHooks.forward_pre), len(GlobalHooks.forward), len(GlobalHooks.backward)),
    }
    return found


class Tensors:
    """Tensors and what they hold: values, versions, gradients."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors
        self.before = self._now()

    def _now(self) -> dict[str, tuple[Any, ...]]:
        with pullback.no_grad():
            return {name: _described(tensor) for name, tensor in self.tensors.items()}

    def damage(self, complete: dict[str, tuple[Any, ...]]) -> list[str]:
        """Which of them are neither as they were nor as the whole run leaves them."""
        found = []
        for name, (values, version, grad, requires_grad) in self._now().items():
            before, after = self.before[name], complete.get(name, self.before[name])
            if values not in (before[0], after[0]):
                found.append(f"{name} is half written: {values}")
            if values != before[0] and version == before[1]:
                found.append(f"{name} was written, and its version does not say so")
            if values == before[0] == after[0] and version != before[1] and version != after[1]:
                found.append(f"the version of {name} went from {before[1]} to {version}")
            if grad not in (before[2], after[2]):
                found.append(f"the gradient of {name} is {grad}, not {before[2]} or {after[2]}")
            if requires_grad not in (before[3], after[3]):
                found.append(f"{name} requires grad: {requires_grad}")
        return found


def _described(tensor: Any) -> tuple[Any, ...]:
    grad = tensor.grad if tensor.is_leaf else None
    return tensor.tolist(), tensor._version, None if grad is None else grad.tolist(), tensor.requires_grad


def probe() -> list[Any]:
    """A small program that uses everything a fault might have broken; its results."""
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    (slope,) = pullback.autograd.grad(y, x, create_graph=True)
    slope.sum().backward()
    with pullback.no_grad():
        recorded = (x + 1).requires_grad
    z = x * 3
    z.mul_(2)
    z.sum().backward()
    batched = pullback.vmap(lambda row: row.sum())(pullback.ones(2, 3))
    return [y.item(), slope.tolist(), x.grad.tolist(), recorded, z.requires_grad, batched.tolist(), z._version]
