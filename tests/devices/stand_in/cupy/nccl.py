"""NCCL of the stand-in: ranks that mpiexec started, each with stand-in GPUs; MPI carries the bytes.

Stricter than NCCL where a fault would show on several GPUs only: memory must be of the communicator's GPU, which must be
current, and its stream too; two ranks cannot have the same GPU. Work is done at once, in a group at its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import cuda

available = True
_SIZES = {0: "i1", 1: "u1", 2: "i4", 3: "u4", 4: "i8", 5: "u8", 6: "f2", 7: "f4", 8: "f8"}
_WAYS = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}
_made = 0
_group: list[Any] | None = None
calls: list[str] = []
"""The names of what was called, in order."""


class NcclError(RuntimeError):
    """What NCCL refuses."""


def _world() -> Any:
    from mpi4py import MPI

    return MPI.COMM_WORLD


def get_unique_id() -> tuple[int, int]:
    """Where the others find the rank that asked, and which of its communicators is meant."""
    global _made
    _made += 1
    return _world().Get_rank(), _made


def groupStart() -> None:
    """Take messages down until `groupEnd`."""
    global _group
    _group = []


def groupEnd() -> None:
    """Begin all messages of the group, and wait for them."""
    global _group
    requests = [begin() for begin in _group or ()]
    _group = None
    for request in requests:
        request.Wait()


class NcclCommunicator:
    """One rank's part of a communicator of one GPU."""

    def __init__(self, size: int, number: tuple[int, int], rank: int) -> None:
        self._device = cuda.runtime.getDevice()
        world, (root, made) = _world(), number
        tag = 20000 + made
        own = (rank, world.Get_rank(), self._device)
        if rank == 0:
            places = sorted([own, *(world.recv(tag=tag) for _ in range(size - 1))])
            for _, peer, _ in places[1:]:
                world.send(places, peer, tag)
        else:
            world.send(own, root, tag)
            places = world.recv(source=root, tag=tag)
        if len({gpu for _, _, gpu in places}) < size:
            raise NcclError("NCCL_ERROR_INVALID_USAGE: invalid usage: two ranks have the same GPU")
        self._comm = world.Create_group(world.Get_group().Incl([peer for _, peer, _ in places]), tag)

    def _memory(self, address: int, count: int, kind: int, stream: int, writes: bool) -> Any:
        """The memory that a call may read or write; told to whoever watches the order of work."""
        if cuda.runtime.getDevice() != self._device:
            raise NcclError(f"GPU {cuda.runtime.getDevice()} is current, the communicator is of {self._device}")
        dtype = np.dtype("u2" if kind == 9 else _SIZES[kind])
        if not count:
            return np.empty(0, dtype)
        block = next(
            (b for b in cuda.blocks if b.ptr <= address and address + count * dtype.itemsize <= b.ptr + b.size), None
        )
        if block is None or block.device_id != self._device:
            raise NcclError(f"{count} elements at {address} are not in the memory of GPU {self._device}")
        queue = cuda.streams[stream]
        if queue.device_id != self._device:
            raise NcclError("a stream of another GPU")
        if cuda.watch is not None:
            cuda.watch.work(queue, [] if writes else [block], [block] if writes else [], writes)
        start = address - block.ptr
        return block.buffer[start : start + count * dtype.itemsize].view(dtype)

    def _joined(self, address: int, count: int, kind: int, op: int, stream: int) -> Any:
        own = self._memory(address, count, kind, stream, False)
        parts = self._comm.allgather(own.tobytes())
        result = _numbers(np.frombuffer(parts[0], own.dtype), kind)
        for part in parts[1:]:
            result = _WAYS[op](result, _numbers(np.frombuffer(part, own.dtype), kind))
        return (result.view("u4") >> 16).astype("u2") if kind == 9 else result

    def allReduce(self, source: int, target: int, count: int, kind: int, op: int, stream: int) -> None:
        calls.append("allReduce")
        joined = self._joined(source, count, kind, op, stream)
        self._memory(target, count, kind, stream, True)[...] = joined

    def reduce(self, source: int, target: int, count: int, kind: int, op: int, root: int, stream: int) -> None:
        calls.append("reduce")
        joined = self._joined(source, count, kind, op, stream)
        if self._comm.Get_rank() == root:
            self._memory(target, count, kind, stream, True)[...] = joined

    def reduceScatter(self, source: int, target: int, count: int, kind: int, op: int, stream: int) -> None:
        calls.append("reduceScatter")
        joined = self._joined(source, count * self._comm.Get_size(), kind, op, stream)
        self._memory(target, count, kind, stream, True)[...] = joined.reshape(-1, count)[self._comm.Get_rank()]

    def broadcast(self, source: int, target: int, count: int, kind: int, root: int, stream: int) -> None:
        calls.append("broadcast")
        own = self._memory(source, count, kind, stream, False)
        sent = self._comm.bcast(own.tobytes(), root)
        self._memory(target, count, kind, stream, True)[...] = np.frombuffer(sent, own.dtype)

    def allGather(self, source: int, target: int, count: int, kind: int, stream: int) -> None:
        calls.append("allGather")
        parts = self._comm.allgather(self._memory(source, count, kind, stream, False).tobytes())
        whole = self._memory(target, count * len(parts), kind, stream, True)
        whole[...] = np.frombuffer(b"".join(parts), whole.dtype)

    def send(self, source: int, count: int, kind: int, peer: int, stream: int) -> None:
        calls.append("send")
        own = self._memory(source, count, kind, stream, False)
        self._message(lambda: self._comm.Isend(own.view("u1"), peer))

    def recv(self, target: int, count: int, kind: int, peer: int, stream: int) -> None:
        calls.append("recv")
        own = self._memory(target, count, kind, stream, True)
        self._message(lambda: self._comm.Irecv(own.view("u1"), peer))

    def _message(self, begin: Any) -> None:
        if _group is None:
            begin().Wait()
        else:
            _group.append(begin)

    def destroy(self) -> None:
        self._comm.Free()


def _numbers(values: Any, kind: int) -> Any:
    """Values that NumPy can add: those of bfloat16 as float32, cut off again afterwards."""
    return (values.astype("u4") << 16).view("f4") if kind == 9 else values
