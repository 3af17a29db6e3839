"""The memory behind an array, as bytes: what checkpoints store and what views share.

A storage here is a one-dimensional uint8 array over one block of memory; a tensor is a dtype, an offset, sizes and
strides over it, all counted in elements. Geometry that comes from a file is checked before any memory is touched.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pullback.backend.array_module import data_address, element_strides, memory_bounds, storage_of
from pullback.backend.device import CPU, device_of, move_array
from pullback.backend.device_array import DeviceArray
from pullback.typing import Array, DType, Shape

_LARGEST_INDEX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class StorageView:
    """Where an array lies in the memory it shares with other views."""

    data: Array
    """The whole block of memory, as uint8."""
    offset: int
    stride: Shape
    owner: Array
    """The array that keeps the memory alive; its identity is the storage's."""
    location: str = "cpu"
    """The device of the memory, where `data` is a copy of it."""
    address: int | None = None
    """Where the memory of another device lies."""

    @property
    def key(self) -> tuple[int, int]:
        """Equal for two live arrays exactly if they lie in one storage."""
        if self.address is not None:
            return self.address, self.data.size
        return (data_address(self.data), self.data.size) if self.data.size else (id(self.owner), 0)


def view_of_storage(array: Array) -> StorageView:
    """Describe `array` as a view of its storage, copying it where PyTorch's strides cannot say how it lies."""
    if isinstance(array, DeviceArray):
        return _copy_of_device_storage(array)
    array = np.asarray(array)
    owner = _memory_owner(array)
    if not _is_expressible(array, owner):
        array = owner = np.array(array, order="C", copy=True)
    data = _bytes_of(owner)
    if array.size == 0:
        return StorageView(data, 0, contiguous_strides(array.shape), owner)
    offset = (data_address(array) - data_address(data)) // array.itemsize
    return StorageView(data, offset, element_strides(array), owner)


def _copy_of_device_storage(array: Any) -> StorageView:
    """The storage of an array of another device, copied to the CPU."""
    owner = storage_of(array)
    address = data_address(owner)
    values = np.asarray(move_array(owner, CPU))
    copied = view_of_storage(values)
    offset = (data_address(array) - address) // array.itemsize if array.size else 0
    return StorageView(copied.data, offset, element_strides(array), copied.owner, str(device_of(array)), address)


def _memory_owner(array: Array) -> Array:
    """The array that owns the memory, behind views and the wrappers that stride tricks and buffers put between."""
    owner = array
    candidate: Any = array.base
    while candidate is not None:
        if isinstance(candidate, np.ndarray):
            owner = candidate
        candidate = candidate.obj if isinstance(candidate, memoryview) else getattr(candidate, "base", None)
    return owner


def _is_expressible(array: Array, owner: Array) -> bool:
    if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        return False
    if array.size == 0:
        return True
    low, high = memory_bounds(array)
    owner_low, owner_high = memory_bounds(owner)
    size = array.itemsize
    inside = owner_low <= low and high <= owner_high and (owner_high - owner_low) % size == 0
    return (
        inside
        and (data_address(array) - owner_low) % size == 0
        and all(stride >= 0 and stride % size == 0 for stride in array.strides)
    )


def _bytes_of(owner: Array) -> Array:
    flat = owner.reshape(-1) if owner.flags.c_contiguous else owner.T.reshape(-1)
    return cast(Array, flat.view(np.uint8))


def contiguous_strides(size: Sequence[int]) -> Shape:
    """The strides, in elements, of a dense row-major tensor."""
    strides: list[int] = []
    step = 1
    for length in reversed(size):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def allocate_bytes(count: int) -> Array:
    """Make a storage of `count` bytes, whose values are not set."""
    return np.empty(count, np.uint8)


def bytes_over(buffer: Any, offset: int = 0, count: int = -1) -> Array:
    """A storage over part of an existing buffer, such as a mapped file; it is writable if the buffer is."""
    return np.frombuffer(buffer, np.uint8, count, offset) if count else np.empty(0, np.uint8)


def memory_of(data: Array) -> memoryview:
    """The bytes of a storage, to be written to or filled from a file."""
    return memoryview(cast(Any, data))


def strided_view(data: Array, dtype: DType, offset: int, size: Sequence[int], stride: Sequence[int]) -> Array:
    """The view of a storage with the given geometry, refused where it would leave the storage.

    >>> strided_view(allocate_bytes(8), np.dtype("float32"), 1, (2,), (1,))
    Traceback (most recent call last):
    ...
    RuntimeError: the tensor needs elements 1 to 2 of its storage, which holds 2: ...
    """
    check_geometry(data.size // dtype.itemsize, offset, size, stride)
    if 0 in size:
        return data[:0].view(dtype).reshape(tuple(size))
    byte_strides = tuple([step * dtype.itemsize for step in stride])
    return np.ndarray(tuple(size), dtype, data, offset * dtype.itemsize, byte_strides)


def check_geometry(storage_size: int, offset: int, size: Sequence[int], stride: Sequence[int]) -> None:
    """Raise RuntimeError unless a tensor of this geometry lies inside a storage of `storage_size` elements."""
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if len(size) > 64:
        raise RuntimeError(f"the tensor has {len(size)} dimensions; an array has at most 64")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}: it must not be negative")
    if any(length < 0 for length in size) or any(step < 0 for step in stride):
        raise RuntimeError(f"sizes {list(size)} and strides {list(stride)} must not be negative")
    if max((offset, *stride)) > _LARGEST_INDEX // 16:
        raise RuntimeError(f"strides {list(stride)} and storage offset {offset} are out of bounds: they are too large")
    count = 1
    for length in size:
        count *= max(length, 1)
    if count > _LARGEST_INDEX // 16:
        raise RuntimeError(f"numel: integer multiplication overflow: sizes {list(size)} are too large")
    if 0 in size:
        return
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if last >= storage_size:
        raise RuntimeError(
            f"the tensor needs elements {offset} to {last} of its storage, which holds {storage_size}: "
            f"sizes {list(size)}, strides {list(stride)} and storage offset {offset} are out of bounds"
        )


def reverse_byte_order(data: Array, dtype: DType) -> None:
    """Turn a storage of the other byte order into the machine's, in place."""
    part = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if part > 1:
        words = data.reshape(-1, part)
        words[...] = words[:, ::-1].copy()


def native_byte_order() -> str:
    """'little' or 'big'."""
    return sys.byteorder


def copied(data: Array) -> Array:
    """A storage of its own with the same bytes."""
    return data.copy()
