"""The functions that plain pickles of PyTorch's tensors name, and others that libraries take from this private module."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.nn.parameter import Parameter

__all__ = [
    "_flatten_dense_tensors",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_unflatten_dense_tensors",
]


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


def _flatten_dense_tensors(tensors: Any) -> Any:
    """All elements of the tensors, one tensor after the other."""
    return functions.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Views of `flat` in the shapes of the tensors."""
    parts = functions.split(flat[: sum(t.numel() for t in tensors)], [t.numel() for t in tensors])
    return tuple([part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)])


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device: the CPU has none."""
    return device if isinstance(device, int) else -1
