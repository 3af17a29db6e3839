"""NCCL behind a process group: CuPy's communicator, or libnccl itself, for arrays on GPUs, one GPU per rank.

MPI starts it: it carries NCCL's unique number from rank 0 to the others.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.backend.array_module import empty
from pullback.backend.dtype import from_numpy_dtype, uint8
from pullback.distributed import nccl_library
from pullback.distributed.communicator import Request
from pullback.distributed.mpi import MpiCommunicator
from pullback.distributed.reduce_operation import RedOpType
from pullback.typing import Array

__all__ = ["NcclCommunicator", "is_installed"]

_TYPES = {"int8": 0, "uint8": 1, "bool": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7,
          "float64": 8, "bfloat16": 9}  # fmt: skip
_OPERATIONS = {"SUM": 0, "AVG": 0, "PREMUL_SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3}
"""NCCL's numbers of dtypes and of ways of joining; an AVG is divided by the collective that asked for it."""


def is_installed() -> bool:
    """Whether CuPy is there, and NCCL: with it, or as a library."""
    return importlib.util.find_spec("cupy") is not None and _nccl() is not None


def _nccl() -> Any:
    """CuPy's `cupy.cuda.nccl`, or what stands for it where CuPy was built without; None where there is no NCCL."""
    of_cupy = getattr(_cuda(), "nccl", None)
    if getattr(of_cupy, "available", False):
        return of_cupy
    return nccl_library if nccl_library.find() is not None else None


def _cuda() -> Any:
    """CuPy's `cupy.cuda`, which takes seconds to import."""
    return importlib.import_module("cupy.cuda")


class NcclRequest:
    """Work on a stream, done when the event behind it has happened."""

    def __init__(self, gpu: int, stream: Any, *kept: Any) -> None:
        self._gpu, self._stream, self._kept = gpu, stream, kept
        self.record()

    def record(self) -> None:
        """Be done when what the stream has been given by now is."""
        with _cuda().Device(self._gpu):
            self._event = _cuda().Event(disable_timing=True)
            self._event.record(self._stream)

    def is_done(self) -> bool:
        """Whether the GPU has come this far."""
        return bool(self._event.done)

    def source(self) -> int:
        """NCCL receives from a named rank only."""
        return -1


class _Channel:
    """NCCL among some ranks, each on one GPU, with a stream of its own."""

    def __init__(self, mpi: MpiCommunicator) -> None:
        nccl = _nccl()
        number = mpi.comm.bcast(nccl.get_unique_id() if mpi.rank == 0 else None, 0)
        self.rank = mpi.rank
        self.comm = nccl.NcclCommunicator(mpi.size, number, mpi.rank)
        self.stream = _cuda().Stream(non_blocking=True)


class NcclCommunicator:
    """A communicator of NCCL; barriers and subgroups go through MPI.

    # Note [Channels of NCCL]
    Which GPU a rank uses is known when it first sends an array, so a channel is begun then, and kept for that GPU: a
    collective begins one of all ranks. A message of two ranks cannot ask the others to help: where there is no channel of
    all ranks yet, it begins one of these two. `wait` waits for the others to come, and raises when they do not.
    """

    def __init__(self, mpi: MpiCommunicator) -> None:
        self.rank, self.size = mpi.rank, mpi.size
        self.wait: Callable[[Request], None] = _wait
        self._mpi = mpi
        self._grouped: list[NcclRequest] | None = None
        self._channels: dict[int, _Channel] = {}
        self._pairs: dict[tuple[int, int], _Channel] = {}

    @classmethod
    def join(cls, world: MpiCommunicator) -> NcclCommunicator:
        """The communicator of all processes."""
        return cls(world.duplicate())

    def begin(self, gpu: int) -> _Channel:
        """The channel of all ranks of this rank's GPU. See Note [Channels of NCCL]."""
        if gpu not in self._channels:
            self.wait(self._mpi.barrier())
            with _cuda().Device(gpu):
                self._channels[gpu] = _Channel(self._mpi)
        return self._channels[gpu]

    def _begin_pair(self, gpu: int, peer: int) -> tuple[_Channel, int]:
        """A channel that reaches a rank, and the number of that rank there."""
        if gpu in self._channels or peer == self.rank:
            return self.begin(gpu), peer
        if (gpu, peer) not in self._pairs:
            own, others = empty((1,), uint8.numpy_dtype), empty((1,), uint8.numpy_dtype)
            self.wait(self._mpi.send(own, peer, 0))
            self.wait(self._mpi.receive(others, peer, 0))
            with _cuda().Device(gpu):
                self._pairs[gpu, peer] = _Channel(self._mpi.subgroup(sorted([self.rank, peer]), 0))
        channel = self._pairs[gpu, peer]
        return channel, 1 - channel.rank

    def _run(self, name: str, *arguments: Any, kept: Sequence[Any]) -> Request:
        gpu = kept[0].raw.device.id
        return self._launch(self.begin(gpu), gpu, name, *arguments, kept=kept)

    def _launch(self, channel: _Channel, gpu: int, name: str, *arguments: Any, kept: Sequence[Any]) -> Request:
        cuda = _cuda()
        with cuda.Device(gpu):
            ready = cuda.Event(disable_timing=True)
            ready.record(cuda.get_current_stream())
            channel.stream.wait_event(ready)
            getattr(channel.comm, name)(*arguments, channel.stream.ptr)
        request = NcclRequest(gpu, channel.stream, *kept)
        if self._grouped is not None:
            self._grouped.append(request)
        return request

    @contextmanager
    def together(self, gpus: Iterable[int]) -> Iterator[None]:
        """Begin messages that wait for each other at once: one by one, the first would hold up its stream for ever."""
        for gpu in gpus:
            self.begin(gpu)
        nccl = _nccl()
        grouped: list[NcclRequest] = []
        self._grouped = grouped
        nccl.groupStart()
        try:
            yield
        finally:
            self._grouped = None
            nccl.groupEnd()
        for request in grouped:  # only now has the stream been given them
            request.record()

    def all_reduce(self, array: Array, op: RedOpType) -> Request:
        place, kind = array.raw.data.ptr, _kind(array)
        return self._run("allReduce", place, place, array.size, kind, _OPERATIONS[op.name], kept=[array])

    def reduce(self, array: Array, op: RedOpType, root: int) -> Request:
        place, kind = array.raw.data.ptr, _kind(array)
        return self._run("reduce", place, place, array.size, kind, _OPERATIONS[op.name], root, kept=[array])

    def broadcast(self, array: Array, root: int) -> Request:
        place = array.raw.data.ptr
        return self._run("broadcast", place, place, array.nbytes, 1, root, kept=[array])

    def all_gather(self, output: Array, input: Array) -> Request:
        return self._run("allGather", input.raw.data.ptr, output.raw.data.ptr, input.nbytes, 1, kept=[output, input])

    def reduce_scatter(self, output: Array, input: Array, op: RedOpType) -> Request:
        place, kind = input.raw.data.ptr, _kind(input)
        return self._run(
            "reduceScatter", place, output.raw.data.ptr, output.size, kind, _OPERATIONS[op.name], kept=[output, input]
        )

    def all_to_all(
        self, output: Array, output_counts: Sequence[int], input: Array, input_counts: Sequence[int]
    ) -> Request:
        gpu = input.raw.device.id
        sent = received = 0
        with self.together([gpu]):
            for peer in range(self.size):
                self.send(input[sent : sent + input_counts[peer]], peer, 0)
                self.receive(output[received : received + output_counts[peer]], peer, 0)
                sent, received = sent + input_counts[peer], received + output_counts[peer]
        return NcclRequest(gpu, self.begin(gpu).stream, output, input)

    def gather(self, output: Array | None, input: Array, root: int) -> Request:
        counts = [input.size if peer == root else 0 for peer in range(self.size)]
        received = [input.size if output is not None else 0] * self.size
        return self.all_to_all(input[:0] if output is None else output, received, input, counts)

    def scatter(self, output: Array, input: Array | None, root: int) -> Request:
        sent = [output.size if input is not None else 0] * self.size
        received = [output.size if peer == root else 0 for peer in range(self.size)]
        return self.all_to_all(output, received, output[:0] if input is None else input, sent)

    def send(self, array: Array, dst: int, tag: int) -> Request:
        gpu = array.raw.device.id
        channel, peer = self._begin_pair(gpu, dst)
        return self._launch(channel, gpu, "send", array.raw.data.ptr, array.nbytes, 1, peer, kept=[array])

    def receive(self, array: Array, src: int | None, tag: int) -> Request:
        if src is None:
            raise ValueError("NCCL receives from a named rank only: pass src")
        gpu = array.raw.device.id
        channel, peer = self._begin_pair(gpu, src)
        return self._launch(channel, gpu, "recv", array.raw.data.ptr, array.nbytes, 1, peer, kept=[array])

    def barrier(self) -> Request:
        for gpu, channel in self._channels.items():
            with _cuda().Device(gpu):
                channel.stream.synchronize()
        return self._mpi.barrier()

    def subgroup(self, ranks: Sequence[int], number: int) -> NcclCommunicator:
        return NcclCommunicator(self._mpi.subgroup(ranks, number))

    def free(self) -> None:
        for channel in [*self._channels.values(), *self._pairs.values()]:
            channel.comm.destroy()


def _wait(request: Request) -> None:
    while not request.is_done():
        time.sleep(0.0001)


def _kind(array: Array) -> int:
    name = from_numpy_dtype(array.dtype).name
    if name not in _TYPES:
        raise NotImplementedError(f"NCCL cannot join values of dtype {name}")
    return _TYPES[name]
