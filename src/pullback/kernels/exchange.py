"""Handing memory to other libraries and taking theirs: bytes, buffers, DLPack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backend.array_module import flat_storage, storage_of
from pullback.backend.c_types import ctypes
from pullback.backend.device import find_library, usable_device
from pullback.backend.device_array import DeviceArray
from pullback.checks import checked
from pullback.typing import Array, DType


def bytes_of_storage(array: Array) -> Array:
    """The bytes of the storage that `array` is a view of."""
    return flat_storage(storage_of(array)).view(np.uint8)


_CUDA = 2
"""DLPack's number for the memory of NVIDIA's GPUs."""


def export_dlpack(array: Array, **options: Any) -> Any:
    """A DLPack capsule of the array's memory."""
    if isinstance(array, DeviceArray):
        array.library.shared_with_others()
        return array.raw.__dlpack__(**options)
    if not array.flags.writeable:
        array = array.view()
        array.flags.writeable = True
    return array.__dlpack__(**options)


def import_dlpack(source: Any) -> Array:
    """An array on the memory that a DLPack exporter, or its capsule, describes."""
    if hasattr(source, "__dlpack_device__") and source.__dlpack_device__()[0] == _CUDA:
        library = find_library(usable_device("cuda").type)
        library.shared_with_others()
        imported: Array = library.wrapper(library.module.from_dlpack(source))
        return imported
    array = np.from_dlpack(source if hasattr(source, "__dlpack__") else Capsule(source))
    if array.flags.writeable:
        return array
    return _writable(array)


def _writable(array: Array) -> Array:
    """NumPy marks what older exporters give as read-only; PyTorch's tensors are not."""
    if 0 in array.shape:
        return np.empty(array.shape, array.dtype)
    interface = array.__array_interface__
    span = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
    memory = (ctypes.c_char * span).from_address(interface["data"][0])
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)


class Capsule:
    """An exporter made of a capsule that was made before."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def array_over_buffer(buffer: Any, dtype: DType, count: int, offset: int) -> Array:
    """A one-dimensional array on the memory of a Python buffer."""
    return np.frombuffer(buffer, dtype, count, offset)


@checked
def array_over_file(filename: str, dtype: DType, size: int, shared: bool) -> Array:
    """An array on the contents of a file: writing to it writes to the file if `shared`, which is then made if needed."""
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(size * dtype.itemsize, file.tell()))
    if size == 0:
        return np.empty(0, dtype)
    mapped = np.memmap(filename, dtype, "r+" if shared else "c", shape=(size,))
    return np.frombuffer(mapped, dtype, size)


def map_elements(target: Array, function: Callable[..., Any], others: Sequence[Array]) -> None:
    """Overwrite each element with what `function` makes of it and of the others at its place."""
    operands = [np.broadcast_to(o, target.shape).reshape(-1).tolist() for o in others]
    values = [function(*items) for items in zip(target.reshape(-1).tolist(), *operands, strict=True)]
    target[...] = np.asarray(values, target.dtype).reshape(target.shape)
