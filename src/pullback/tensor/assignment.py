"""What may be assigned to a tensor's `grad` and `data`, and how errors call a tensor's type."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import lie_apart
from pullback.backend.dtype import cpp_type_name, scalar_type_name, type_name
from pullback.errors import kind_of
from pullback.tensor.autograd_extra import AutogradExtra
from pullback.tensor.tensor_base import TensorBase


def check_assigned_grad(tensor: Any, value: Any) -> None:
    """Refuse what cannot be the gradient of a tensor."""
    if not issubclass(type(value), TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind_of(value)}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    extra = tensor._extra
    free = extra is not None and extra.grad_dtype is not AutogradExtra.UNSET
    wanted = extra.grad_dtype if extra is not None and free else tensor.dtype
    if wanted is not None and value.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{cpp_type_name(value._array.dtype)}' to a tensor with "
            f"grad_dtype '{scalar_type_name(wanted.numpy_dtype)}'. The gradient must match the tensor's grad_dtype "
            "(defaults to the tensor's dtype): cast it, or set grad_dtype of the tensor."
        )
    if value._array.shape != tensor._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of size "
            f"'{list(tensor._array.shape)}'. Please ensure that the gradient and the tensor are the same size"
        )
    if lie_apart(value._array, tensor._array):
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device}' to a tensor with device type "
            f"'{tensor.device}'. Please ensure that the gradient and the tensor are on the same device"
        )


def may_take_data(tensor: Any, value: Any) -> bool:
    """Whether `tensor.data = value` is possible: not between a tensor without values, or a sparse one, and another."""
    if tensor.is_sparse != value.is_sparse:
        return False
    return type(value._array) is type(tensor._array) or "meta" not in (tensor.device.type, value.device.type)


def describe_type(tensor: Any) -> str:
    """PyTorch's name for the tensor's type, as in `torch.FloatTensor` and `torch.sparse.FloatTensor`."""
    name = type_name(tensor._array.dtype)
    kind = "sparse" if tensor.is_sparse else "meta" if tensor.device.type == "meta" else None
    return name if kind is None else name.replace(".", f".{kind}.", 1)
