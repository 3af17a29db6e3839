"""NCCL behind a process group: CuPy's communicator, or libnccl itself, for arrays on GPUs, one GPU per rank.

MPI starts it: it carries NCCL's unique number from rank 0 to the others.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from pullback.backend.dtype import from_numpy_dtype
from pullback.distributed import nccl_library
from pullback.distributed.communicator import Communicator, Request
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

    def __init__(self, stream: Any, *kept: Any) -> None:
        self._event = _cuda().Event(disable_timing=True)
        self._event.record(stream)
        self._kept = kept

    def is_done(self) -> bool:
        """Whether the GPU has come this far."""
        return bool(self._event.done)

    def source(self) -> int:
        """NCCL receives from a named rank only."""
        return -1


class NcclCommunicator:
    """A communicator of NCCL on a stream of its own; barriers and subgroups go through MPI."""

    def __init__(self, mpi: MpiCommunicator) -> None:
        nccl = _nccl()
        self.rank, self.size = mpi.rank, mpi.size
        self._mpi = mpi
        number = mpi.comm.bcast(nccl.get_unique_id() if mpi.rank == 0 else None, 0)
        self._comm = nccl.NcclCommunicator(mpi.size, number, mpi.rank)
        self._group = nccl
        self._stream = _cuda().Stream(non_blocking=True)

    @classmethod
    def join(cls, world: MpiCommunicator) -> NcclCommunicator:
        """The communicator of all processes."""
        return cls(world.duplicate())

    def _run(self, name: str, *arguments: Any, kept: Sequence[Any]) -> Request:
        cuda = _cuda()
        ready = cuda.Event(disable_timing=True)
        ready.record(cuda.get_current_stream())
        self._stream.wait_event(ready)
        getattr(self._comm, name)(*arguments, self._stream.ptr)
        return NcclRequest(self._stream, *kept)

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
        self._group.groupStart()
        request: Request | None = None
        sent = received = 0
        for peer in range(self.size):
            request = self.send(input[sent : sent + input_counts[peer]], peer, 0)
            request = self.receive(output[received : received + output_counts[peer]], peer, 0)
            sent, received = sent + input_counts[peer], received + output_counts[peer]
        self._group.groupEnd()
        return NcclRequest(self._stream, output, input, request)

    def gather(self, output: Array | None, input: Array, root: int) -> Request:
        counts = [input.size if peer == root else 0 for peer in range(self.size)]
        received = [input.size if output is not None else 0] * self.size
        return self.all_to_all(input[:0] if output is None else output, received, input, counts)

    def scatter(self, output: Array, input: Array | None, root: int) -> Request:
        sent = [output.size if input is not None else 0] * self.size
        received = [output.size if peer == root else 0 for peer in range(self.size)]
        return self.all_to_all(output, received, output[:0] if input is None else input, sent)

    def send(self, array: Array, dst: int, tag: int) -> Request:
        return self._run("send", array.raw.data.ptr, array.nbytes, 1, dst, kept=[array])

    def receive(self, array: Array, src: int | None, tag: int) -> Request:
        if src is None:
            raise ValueError("NCCL receives from a named rank only: pass src")
        return self._run("recv", array.raw.data.ptr, array.nbytes, 1, src, kept=[array])

    def barrier(self) -> Request:
        self._stream.synchronize()
        return self._mpi.barrier()

    def subgroup(self, ranks: Sequence[int], number: int) -> Communicator:
        return NcclCommunicator(self._mpi.subgroup(ranks, number))

    def free(self) -> None:
        self._comm.destroy()


def _kind(array: Array) -> int:
    name = from_numpy_dtype(array.dtype).name
    if name not in _TYPES:
        raise NotImplementedError(f"NCCL cannot join values of dtype {name}")
    return _TYPES[name]
