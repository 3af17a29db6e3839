"""Transfers: memory of the host that a GPU reads and writes by itself, and copies that run beside the computation.

Copies to and from the host have a stream of their own on each GPU. Nothing here waits on the host: what a copy needs is
held until it is done, which is looked at whenever another is begun (`sweep`).
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import numpy as np

_OF_THE_HOST = 1
"""The driver's number for memory of the host that it knows."""


class Parked:
    """An array of the GPU that was moved to the host for a while."""

    __slots__ = ("dtype", "event", "host", "nbytes", "shape", "strides")

    def __init__(self, raw: Any, host: Any, event: Any) -> None:
        self.shape, self.strides, self.dtype, self.nbytes = raw.shape, raw.strides, raw.dtype, raw.nbytes
        self.host = host
        self.event = event
        """What the copy back must wait for."""


class Transfers:
    """Copies between the host and one library's GPUs, and memory that several streams use."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cuda = library.module.cuda
        self._streams: dict[int, Any] = {}
        self._under_way: deque[tuple[Any, Any]] = deque()
        """Events, and what must live until they have happened."""
        self._shared: list[tuple[Any, Any]] = []
        """Memory, and the streams that use it beside its own."""

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array of NumPy's in memory that the GPU can reach."""
        count = int(np.prod(shape, dtype=np.int64))
        memory = self._cuda.alloc_pinned_memory(max(1, count) * dtype.itemsize)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def is_pinned(self, address: int) -> bool:
        """Whether the GPU can reach the memory of the host at an address."""
        try:
            told = self._cuda.runtime.pointerGetAttributes(address)
        except self._cuda.runtime.CUDARuntimeError:
            return False
        kind = getattr(told, "type", None)
        return kind == _OF_THE_HOST if kind is not None else bool(told.devicePointer and told.hostPointer)

    def between(self, raw: Any, number: int) -> Any:
        """A copy of an array on a GPU, beside nothing: the current streams of both GPUs wait for each other."""
        source, cuda = raw.data.device_id, self._cuda
        if not (raw.flags.c_contiguous or raw.flags.f_contiguous):
            with cuda.Device(source):
                raw = raw.copy("K")
        with cuda.Device(number):
            block = self._library.module.ndarray((raw.nbytes,), np.uint8)
            target = self._library.module.ndarray(raw.shape, raw.dtype, block.data, raw.strides)
            there = cuda.get_current_stream()
            is_free = self._now(there)
        with cuda.Device(source):
            here = cuda.get_current_stream()
            here.wait_event(is_free)
            target.data.copy_from_device_async(raw.data, raw.nbytes, here)
            done = self._now(here)
        with cuda.Device(number):
            there.wait_event(done)
        return target

    def park(self, raw: Any) -> Parked | None:
        """Copy an array to the host, beside whatever is computed next; None for one with gaps in memory."""
        if not (raw.flags.c_contiguous or raw.flags.f_contiguous) or not raw.size:
            return None
        self.sweep()
        stream = self._copying()
        host = self.pinned((raw.nbytes,), np.dtype(np.uint8))
        stream.wait_event(self._now(self._cuda.get_current_stream()))
        raw.data.copy_to_host_async(host.ctypes.data, raw.nbytes, stream)
        done = self._now(stream)
        self._under_way.append((done, raw))
        return Parked(raw, host, done)

    def unpark(self, parked: Parked) -> Any:
        """Copy an array back, beside what is computed meanwhile; later work of the current stream waits for it."""
        self.sweep()
        here, stream = self._cuda.get_current_stream(), self._copying()
        with stream:  # memory of the copying stream needs not wait for what is computed
            flat = self._library.module.ndarray((parked.nbytes,), np.uint8)
        raw = self._library.module.ndarray(parked.shape, parked.dtype, flat.data, parked.strides)
        del flat
        stream.wait_event(parked.event)
        raw.data.copy_from_host_async(parked.host.ctypes.data, parked.nbytes, stream)
        done = self._now(stream)
        here.wait_event(done)
        self._under_way.append((done, parked.host))
        self.share(raw, here)
        return raw

    def share(self, raw: Any, stream: Any) -> None:
        """Note that a stream uses memory of another: it is not given away before that stream is done with it."""
        self.sweep()
        self._shared.append((raw.data.mem, stream))

    def sweep(self) -> None:
        """Let go what no copy and no stream needs any more."""
        while self._under_way and self._under_way[0][0].done:
            self._under_way.popleft()
        if not self._shared:
            return
        kept = []
        for memory, stream in self._shared:
            # Held by this list's tuple, by the name and by the call: nobody else has it.
            if sys.getrefcount(memory) <= 3:
                with self._cuda.Device(memory.device_id):
                    self._under_way.append((self._now(stream), memory))
            else:
                kept.append((memory, stream))
        self._shared = kept

    def _copying(self) -> Any:
        number = self._cuda.runtime.getDevice()
        if number not in self._streams:
            self._streams[number] = self._cuda.Stream(non_blocking=True)
        return self._streams[number]

    def _now(self, stream: Any) -> Any:
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event
