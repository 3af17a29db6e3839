"""A device made of a strict stand-in for an array library: NumPy's arrays behind a wall.

Nothing of it becomes a NumPy array or a Python number by accident, and it does not mix with arrays of the host. What a
kernel does to it, CuPy must be able to do: where CuPy knows less than NumPy, so does this library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.backend.array_module import contiguous_strides, storage_of
from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.devices.library import Library
from pullback.devices.table import register


class FakeArray(DeviceArray):
    __slots__ = ()


class HostRead(AssertionError):
    """Something read a value of the device where it must not."""


class FakeLibrary(Library):
    name = "fake"
    module = np
    array_type = np.ndarray
    wrapper = FakeArray

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        """What was read on the host, in order."""
        self.is_strict = False
        self.watch: Any = None
        """Who is told which arrays work reads and makes, where order is checked (fake_streams.py)."""

    def call(self, function: Any, args: Any, options: Any) -> Any:
        result = super().call(function, args, options)
        if self.watch is not None:
            self.watch.work((args, options, getattr(function, "__self__", None)), (result, options.get("out")))
        return result

    def take(self, raw: Any, index: Any) -> Any:
        found = super().take(raw, index)
        if self.watch is not None:
            self.watch.work(raw, found)
        return found

    def put(self, raw: Any, index: Any, value: Any) -> None:
        super().put(raw, index, value)
        if self.watch is not None:
            self.watch.work(value, raw, writes=True)

    def place_of(self, raw: Any) -> device:
        return FAKE

    def upload(self, array: Any) -> Any:
        return np.array(array, copy=True, order="K")

    def download(self, raw: Any) -> Any:
        return np.array(raw, copy=True, order="K")

    def read(self, raw: Any, why: str) -> Any:
        self.reads.append(why)
        if self.is_strict:
            raise HostRead(f"a value of the device is read on the host: {why}")
        if why not in ("item", "tolist") and raw.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous")
        return raw.reshape(()) if why not in ("item", "tolist") else raw

    def address(self, raw: Any) -> int:
        return int(raw.__array_interface__["data"][0])

    def owner(self, raw: Any) -> Any:
        return storage_of(raw)

    def view_of(self, raw: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
        dtype = np.dtype(dtype)
        if 0 in shape:
            return np.empty(shape, dtype)
        as_strided = np.lib.stride_tricks.as_strided
        first = as_strided(raw.reshape(1) if not raw.ndim else raw, (1,), (raw.itemsize,)).view(np.uint8)
        place = as_strided(first[:1], (offset + dtype.itemsize,), (1,))[offset:].view(dtype)
        if strides is None:
            strides = tuple(step * dtype.itemsize for step in contiguous_strides(shape))
        return as_strided(place, shape, strides)

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Refuse everything that reads a value on the host."""
        self.is_strict = True
        try:
            yield
        finally:
            self.is_strict = False


library = FakeLibrary()
FakeArray.library = library
loader = register(library)
FAKE = device("fake", 0)
