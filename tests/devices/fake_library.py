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
from pullback.devices.graph_runner import GraphRunner
from pullback.devices.library import Library
from pullback.devices.table import register


class FakeArray(DeviceArray):
    __slots__ = ()


class HostRead(AssertionError):
    """Something read a value of the device where it must not."""


class Captured:
    """A run that is repeated: what it gives is always in the same memory. Nothing has run when it is made."""

    nodes = 1

    def __init__(self, run: Any) -> None:
        self._run = run
        library.writes = []
        try:
            self.results = run()
        finally:
            for raw, before in reversed(library.writes):
                raw[...] = before
            library.writes = None

    def launch(self) -> None:
        library.graph_launches += 1
        for kept, made in zip(self.results, self._run(), strict=True):
            if isinstance(kept, FakeArray) and kept is not made:
                np.asarray(Lent(kept.raw, None))[...] = made.raw


class Lent:
    """Memory that lives elsewhere, for NumPy: an array made of it holds the loan."""

    def __init__(self, raw: Any, loan: Any) -> None:
        # Memory that several elements share is written to as well.
        self.__array_interface__ = {**raw.__array_interface__, "data": (raw.__array_interface__["data"][0], False)}
        self.raw, self.loan = raw, loan


COUNTING = ("nonzero", "flatnonzero", "argwhere", "unique", "bincount", "histogram")


def _masks(index: Any) -> list[Any]:
    parts = index if isinstance(index, tuple) else (index,)
    return [part for part in parts if isinstance(part, np.ndarray) and part.dtype == bool]


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
        self.graph_launches = self.stream = 0
        """How often a graph was launched, and which stream is the current one."""
        self.writes: list[Any] | None = None
        """What was written to while launches are taken down, with what was there before."""
        self.watch: Any = None
        """Who is told which arrays work reads and makes, where order is checked (fake_streams.py)."""

    def call(self, function: Any, args: Any, options: Any) -> Any:
        self._note_counting(getattr(function, "__name__", ""))
        result = super().call(function, args, options)
        if self.watch is not None:
            self.watch.work((args, options, getattr(function, "__self__", None)), (result, options.get("out")))
        return result

    def _note_counting(self, why: str) -> None:
        """What CuPy waits for the device for: how many elements a result has, or which position is the last."""
        if why in COUNTING:
            self.reads.append(why)
            if self.is_strict:
                raise HostRead(f"a value of the device is read on the host: {why}")

    def take(self, raw: Any, index: Any) -> Any:
        if _masks(index):
            self._note_counting("nonzero")
        found = super().take(raw, index)
        if self.watch is not None:
            self.watch.work(raw, found)
        return found

    def put(self, raw: Any, index: Any, value: Any) -> None:
        if self.writes is not None:
            self.writes.append((raw, raw.copy()))
        masks = _masks(index)
        if any(mask.ndim != raw.ndim or np.ndim(value) for mask in masks):
            self._note_counting("nonzero")
            if any(not mask.ndim for mask in masks):
                raise ValueError("Calling nonzero on 0d arrays is not allowed.")
        super().put(raw, index, value)
        if self.watch is not None:
            self.watch.work(value, raw, writes=True)

    def place_of(self, raw: Any) -> device:
        return FAKE

    def upload(self, array: Any) -> Any:
        return np.array(array, copy=True, order="K")

    def download(self, raw: Any) -> Any:
        if self.writes is not None:
            raise HostRead("values are copied to the host while launches are taken down")
        return np.array(raw, copy=True, order="K")

    def read(self, raw: Any, why: str) -> Any:
        self.reads.append(why)
        if self.is_strict or self.writes is not None:
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

    # Graphs: what was taken down runs again, on the same arrays. See Note [Replayed graphs].

    def program_runner(self, program: Any, runner: Any) -> Any:
        return GraphRunner(self, program, runner)

    def capture(self, run: Any) -> Captured:
        return Captured(run)

    def current_stream(self) -> int:
        return self.stream

    def room_for(self, raw: Any) -> Any:
        low, high = self.bounds(raw)
        memory = np.empty(high - low, np.uint8)
        return np.ndarray(raw.shape, raw.dtype, memory, self.address(raw) - low, raw.strides)

    def copy_memory(self, target: Any, source: Any) -> None:
        target[...] = source

    def lent(self, raw: Any, loan: Any) -> Any:
        return np.asarray(Lent(raw, loan))

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
