"""Tensors as the flat memory that a communicator reads and writes.

As in PyTorch, a collective writes without asking autograd: a leaf that requires grad may be written to, and its version
is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.array_module import data_address, empty_beside
from pullback.backend.mirror import after_write, mirrors
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor
from pullback.typing import Array

__all__ = ["check_dtypes", "check_tensor", "check_tensors", "flat", "joined", "write"]


def check_tensor(value: Any, name: str) -> None:
    """Refuse what is not a dense tensor in memory."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor but got {type(value)} instead."
        )
    if isinstance(value, SparseTensor) or value.is_meta:
        raise NotImplementedError(
            f"collectives take dense tensors that have values; `{name}` is "
            f"{'sparse' if isinstance(value, SparseTensor) else 'on the meta device'}: call to_dense() or make it on the CPU"
        )


def check_tensors(values: Any, name: str) -> None:
    """Refuse what is not a list of dense tensors of one dtype."""
    if not isinstance(values, list | tuple) or not all(isinstance(value, Tensor) for value in values):
        elements = (
            f" with elements of type {[type(each) for each in values]}" if isinstance(values, list | tuple) else ""
        )
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor] but got {type(values)}"
            f"{elements} instead."
        )
    for value in values:
        check_tensor(value, name)
    check_dtypes(values)


def check_dtypes(tensors: Sequence[Any]) -> None:
    """Refuse tensors of different dtypes in one call."""
    other = next((tensor.dtype for tensor in tensors if tensor.dtype is not tensors[0].dtype), None)
    if other is not None:
        raise ValueError(f"Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} and {other}.")


def flat(tensor: Any) -> Array:
    """The elements in row-major order, one after the other: the tensor's own memory where it is laid out so."""
    return tensor._array.reshape(-1) if tensor._array.flags.c_contiguous else tensor._array.ravel()


def writable(tensor: Any) -> Array:
    """Flat memory for what is to be written to `tensor`: its own, or memory that `write` copies from."""
    array = tensor._array
    return array.reshape(-1) if array.flags.c_contiguous else empty_beside(array, (array.size,), array.dtype)


def write(tensor: Any, values: Array) -> None:
    """Put `values` into the tensor; nothing is copied where they are its own memory."""
    array = tensor._array
    if not (array.flags.c_contiguous and data_address(values) == data_address(array)):
        array[...] = values.reshape(array.shape)
    if mirrors:
        after_write(array, tensor._extra.mirror if tensor._extra is not None else None)


def joined(tensors: Sequence[Any]) -> Array:
    """The elements of several tensors of one dtype, one tensor after the other, in new memory."""
    first = tensors[0]._array
    total = empty_beside(first, (sum(tensor.numel() for tensor in tensors),), first.dtype)
    start = 0
    for tensor in tensors:
        total[start : start + tensor.numel()] = flat(tensor)
        start += tensor.numel()
    return total


def divide(values: Array, tensors: Sequence[Any]) -> None:
    """Write to several tensors, in turn, what lies one after the other."""
    start = 0
    for tensor in tensors:
        write(tensor, values[start : start + tensor.numel()])
        start += tensor.numel()
