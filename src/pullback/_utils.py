"""The functions that plain pickles of PyTorch's tensors name."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.nn.parameter import Parameter

__all__ = ["_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_tensor", "_rebuild_tensor_v2"]


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    """A tensor over the memory of a typed storage."""
    return creation.empty(0, dtype=storage.dtype).set_(storage, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Any:
    """As `_rebuild_tensor`, with what autograd knows of the tensor."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter over the memory of a tensor."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter with attributes of its own."""
    parameter = Parameter(data, requires_grad)
    for name, value in (state if isinstance(state, dict) else state[0] or {}).items():
        setattr(parameter, name, value)
    return parameter
