"""The few names of PyTorch's compiled module that programs reach for."""

from __future__ import annotations

from typing import Any

from pullback.graph.history import current_node
from pullback.overrides import DisableTorchFunctionSubclass
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, TensorBase, _disabled_torch_function_impl

__all__ = [
    "DisableTorchFunctionSubclass",
    "Size",
    "TensorBase",
    "_current_autograd_node",
    "_disabled_torch_function_impl",
]


def _current_autograd_node() -> Any:
    """The node that backward evaluates in this thread."""
    return current_node()


def _log_api_usage_once(event: str) -> None:
    """Accepted: nothing is logged."""


def _get_tracing_state() -> None:
    """The tracer that records this call: none."""


def _is_tracing() -> bool:
    """Whether a tracer records this call: never."""
    return False


_TensorBase = Tensor
