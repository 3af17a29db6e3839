"""GPUs, streams, events and memory of the stand-in: all work is done at once, and counted where it would be queued."""

from __future__ import annotations

import os
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np

COUNT = int(os.environ.get("STAND_IN_GPUS", "2"))
"""How many GPUs there are."""
CAPACITY = 1 << 30
"""Bytes of each."""
computes = os.environ.get("STAND_IN_COMPUTES", "1") != "0"
"""Whether kernels compute anything: to count what the host does, they need not."""
texts: dict[str, str] = {}
"""The text of every kernel that was made, and the name of the kernel in it."""
launches: list[str] = []
"""The texts of what was launched, in order."""
watch: Any = None
"""Who is told of work: `work(stream, read, made, writes)`, with the memory that it reads and makes."""


def tell(read: Any, made: Any, writes: bool) -> None:
    """Work of the current stream of the current GPU has been begun."""
    if watch is not None:
        watch.work(get_current_stream(), [a.memory for a in read], [a.memory for a in made], writes)


class CUDARuntimeError(RuntimeError):
    """What the driver refuses."""


class OutOfMemoryError(MemoryError):
    """More memory than a GPU has."""


class _Current(threading.local):
    number = 0

    def __init__(self) -> None:
        self.streams: list[Any] = [Stream.null] * COUNT


class _Runtime(SimpleNamespace):
    CUDARuntimeError = CUDARuntimeError

    def getDeviceCount(self) -> int:
        return COUNT

    def getDevice(self) -> int:
        return _current.number

    def setDevice(self, number: int) -> None:
        if not 0 <= number < COUNT:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _current.number = number

    def deviceCanAccessPeer(self, number: int, peer: int) -> int:
        return int(number != peer)

    def getDeviceProperties(self, number: int) -> dict[str, Any]:
        return {
            "name": f"stand-in GPU {number}".encode(), "totalGlobalMem": CAPACITY, "major": 9, "minor": 0,
            "multiProcessorCount": 1, "l2CacheSize": 1 << 20, "warpSize": 32, "maxThreadsPerMultiProcessor": 2048,
        }  # fmt: skip

    def memGetInfo(self) -> tuple[int, int]:
        return CAPACITY - pool.used_bytes(), CAPACITY

    def memcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        _copy(target, source, size)

    def pointerGetAttributes(self, address: int) -> Any:
        is_pinned = any(start <= address < start + size for start, size in _pinned.items())
        return SimpleNamespace(type=1 if is_pinned else 0)


runtime = _Runtime()


def _copy(target: int, source: int, size: int) -> None:
    import ctypes

    ctypes.memmove(target, source, size)


# Memory.


class Memory:
    """A block of a GPU's memory."""

    def __init__(self, size: int) -> None:
        self.device_id = runtime.getDevice()
        self.home = get_current_stream()
        """The stream that it goes back to: CuPy's pool keeps memory by GPU and stream."""
        self.size = max(size, 1)
        # With room for views that reach over the end, as those of empty arrays do; 16 bytes are the alignment of packs.
        whole = (np.empty if computes else np.zeros)(self.size + 512, np.uint8)
        start = -whole.__array_interface__["data"][0] % 256
        self.buffer = whole[start : start + self.size + 16]
        self.ptr = self.buffer.__array_interface__["data"][0]
        pool.used[self.device_id] += self.size
        self._counted = weakref.finalize(self, pool.give_back, self.device_id, self.size)
        blocks.add(self)


blocks: weakref.WeakSet[Memory] = weakref.WeakSet()


class UnownedMemory:
    """Memory of somebody else."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        raise NotImplementedError("nothing is lent here")


class MemoryPointer:
    """A place in a block."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.device_id, self.ptr = mem, mem.device_id, mem.ptr + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def copy_to_host_async(self, address: Any, size: int, stream: Any) -> None:
        _require(stream)
        _copy(address, self.ptr, size)
        if watch is not None:
            watch.work(stream, [self.mem], [], False)

    def copy_from_host_async(self, address: Any, size: int, stream: Any) -> None:
        _require(stream)
        _copy(self.ptr, address, size)
        if watch is not None:
            watch.work(stream, [], [self.mem], True)

    def copy_from_device_async(self, source: Any, size: int, stream: Any = None) -> None:
        stream = get_current_stream() if stream is None else stream
        _require(stream)
        _copy(self.ptr, source.ptr, size)
        if watch is not None:
            watch.work(stream, [source.mem], [self.mem], True)


class MemoryPool:
    """Counts what is in use on each GPU."""

    def __init__(self) -> None:
        self.used, self.kept = [0] * COUNT, [0] * COUNT

    def malloc(self, size: int) -> MemoryPointer:
        return MemoryPointer(Memory(size), 0)

    def give_back(self, number: int, size: int) -> None:
        self.used[number] -= size

    def used_bytes(self) -> int:
        return self.used[runtime.getDevice()]

    def total_bytes(self) -> int:
        number = runtime.getDevice()
        self.kept[number] = max(self.kept[number], self.used[number])
        return self.kept[number]

    def free_all_blocks(self) -> None:
        self.kept[runtime.getDevice()] = self.used_bytes()


pool = MemoryPool()
memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)


class MemoryHook:
    """Told of what is allocated and given back."""

    def __enter__(self) -> Any:
        _hooks.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _hooks.remove(self)


_hooks: list[Any] = []


def allocate(size: int) -> MemoryPointer:
    """Memory of the current GPU."""
    if size > CAPACITY - pool.used_bytes():
        raise OutOfMemoryError(
            f"Out of memory allocating {size:,} bytes (allocated so far: {pool.used_bytes():,} bytes)."
        )
    made = pool.malloc(size)
    for hook in _hooks:
        hook.malloc_postprocess(device_id=made.device_id, mem_size=made.mem.size, mem_ptr=made.ptr)
        weakref.finalize(
            made.mem, hook.free_postprocess, device_id=made.device_id, mem_size=made.mem.size, mem_ptr=made.ptr
        )
    return made


alloc = allocate
_pinned: dict[int, int] = {}


def alloc_pinned_memory(size: int) -> Any:
    made = np.zeros(size, np.uint8).view(_PinnedMemory)
    made.ptr = made.__array_interface__["data"][0]
    _pinned[made.ptr] = size
    weakref.finalize(made, _pinned.pop, made.ptr, None)
    return made


class _PinnedMemory(np.ndarray):
    ptr: int


# GPUs.


class Device:
    """A GPU; as a block, the current one."""

    def __init__(self, number: Any = None) -> None:
        self.id = runtime.getDevice() if number is None else int(number)
        self._before: list[int] = []

    @property
    def attributes(self) -> dict[str, int]:
        # Blocks run one after another here, so there is room for one at a time: others could not be waited for.
        return {"MultiProcessorCount": 1, "MaxThreadsPerMultiProcessor": 2048}

    def use(self) -> None:
        runtime.setDevice(self.id)

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> Device:
        self._before.append(runtime.getDevice())
        runtime.setDevice(self.id)
        return self

    def __exit__(self, *exception: object) -> None:
        runtime.setDevice(self._before.pop())


device = SimpleNamespace(get_cublas_handle=lambda: 1000 + runtime.getDevice())


# Streams.


streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
"""Every stream by its address."""


class Stream:
    """A queue of a GPU; `null` is the first one of whichever GPU is current."""

    null: Any
    _handles = 1000

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None
    ) -> None:
        Stream._handles += 0 if null else 1
        self.ptr = 0 if null else Stream._handles
        self.device_id = -1 if null else runtime.getDevice()
        self._before: list[Any] = []
        streams[self.ptr] = self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    @property
    def done(self) -> bool:
        self.synchronize()
        return True

    def synchronize(self) -> None:
        _require(self)
        if watch is not None:
            watch.seen_stream(self)

    def use(self) -> Stream:
        _require(self)
        _current.streams[runtime.getDevice()] = self
        return self

    def __enter__(self) -> Stream:
        _require(self)
        number = runtime.getDevice()
        self._before.append((number, _current.streams[number]))
        _current.streams[number] = self
        return self

    def __exit__(self, *exception: object) -> None:
        number, before = self._before.pop()
        _current.streams[number] = before

    def record(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        _require(self)
        if watch is not None:
            watch.wait(self, event)

    def begin_capture(self, mode: Any = None) -> None:
        raise CUDARuntimeError("launches cannot be taken down here")


Stream.null = Stream(null=True)
_current = _Current()


def _require(stream: Any) -> None:
    if stream.device_id not in (-1, runtime.getDevice()):
        raise RuntimeError(
            f"The device that the stream is created on ({stream.device_id}) does not match with the current device "
            f"({runtime.getDevice()})"
        )


def get_current_stream(device_id: int = -1) -> Any:
    return _current.streams[runtime.getDevice() if device_id == -1 else device_id]


class Event:
    """A point in a queue. One that was made for a GPU is recorded by that one's streams."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.device_id = runtime.getDevice()
        self.known: Any = {}

    @property
    def done(self) -> bool:
        self.synchronize()
        return True

    def record(self, stream: Any = None) -> None:
        stream = get_current_stream() if stream is None else stream
        _require(stream)
        if self.device_id != runtime.getDevice():
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: an event of another GPU")
        if watch is not None:
            watch.record(self, stream)

    def synchronize(self) -> None:
        if watch is not None:
            watch.seen(self.known)


def get_elapsed_time(start: Event, end: Event) -> float:
    return 1.0


def using_allocator(malloc: Any) -> Any:
    raise CUDARuntimeError("launches cannot be taken down here")
