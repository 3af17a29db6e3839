"""Automatic differentiation: what users call. The work is done by `pullback.engine` and `pullback.graph`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pullback.autograd import grad_mode
from pullback.autograd.differentiation import backward, grad, make_grads
from pullback.autograd.grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
    view_tracking,
)
from pullback.autograd.gradcheck import gradcheck, gradgradcheck
from pullback.autograd.variable import Variable  # the module is loaded before the function of its name is made
from pullback.engine.passes import current_graph_task
from pullback.graph import former_shape as _former_shape
from pullback.graph import tensor_hooks as _tensor_hooks
from pullback.graph.saved_tensor import SavedTensor
from pullback.modes.switches import switches

__all__ = [
    "Function",
    "NestedIOFunction",
    "SavedTensor",
    "Variable",
    "_force_original_view_tracking",
    "_unsafe_preserve_version_counter",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]  # fmt: skip

_LAZY = {
    "Function": "function", "NestedIOFunction": "function", "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
}  # fmt: skip
_SUBMODULES = {"function", "functional", "forward_ad", "anomaly_mode", "graph", "profiler", "profiler_util"}


def is_multithreading_enabled() -> bool:
    """Whether backward may use threads of its own: only CUDA work would.

    >>> with set_multithreading_enabled(False):
    ...     is_multithreading_enabled()
    False
    """
    return switches.multithreading


def variable(*args: Any, **kwargs: Any) -> Any:
    """Refuse: it was a function of PyTorch once."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


def _is_checkpoint_valid() -> bool:
    """Whether the pass that runs computes all gradients, as a region needs that runs backward once more by itself."""
    task = current_graph_task()
    return task is None or task.exec_info is None


def _make_grads(outputs: Any, grads: Any, is_grads_batched: bool) -> tuple[Any, ...]:
    """The gradients that a backward pass begins with: those given, checked, and ones for scalars."""
    return tuple(make_grads(outputs, grads, is_grads_batched=is_grads_batched))


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple[Any, ...]:
    """Tensors as a tuple: one alone, or None for each of `length`."""
    if tensors is None:
        return (None,) * length
    return (tensors,) if hasattr(tensors, "requires_grad") else tuple(tensors)


def is_view_replay_enabled() -> bool:
    """Whether views of views are made anew operation by operation when their base is written to: they need not be."""
    return bool(view_tracking.is_forced)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(import_module(f"pullback.autograd.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return import_module(f"pullback.autograd.{name}")
    raise AttributeError(f"module 'pullback.autograd' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})


del _former_shape, _tensor_hooks
