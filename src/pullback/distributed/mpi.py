"""MPI behind a process group: mpi4py's non-blocking collectives on flat arrays.

Bytes are moved as bytes, whatever their dtype. What MPI cannot add (16-bit floats and their like) is added by operations
of our own, in the dtype itself as PyTorch does. Sums are taken in an order that depends on the number of ranks and of
elements alone, so the same program gives the same bits every time.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pullback.backend.dtype import from_numpy_dtype
from pullback.backend.joining import join_buffers
from pullback.distributed.communicator import Request
from pullback.distributed.errors import DistBackendError
from pullback.distributed.reduce_operation import RedOpType
from pullback.typing import Array, DType

__all__ = ["MpiCommunicator", "is_installed", "library", "world"]

_DATATYPES = {
    "bool": "C_BOOL", "uint8": "UINT8_T", "uint16": "UINT16_T", "uint32": "UINT32_T", "uint64": "UINT64_T",
    "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T", "float32": "FLOAT", "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX", "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
"""The dtypes in which MPI itself can reduce."""

_OPERATIONS = {"SUM": "SUM", "AVG": "SUM", "PREMUL_SUM": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX",
               "BAND": "BAND", "BOR": "BOR", "BXOR": "BXOR"}  # fmt: skip
_LOGICAL = {"SUM": "LOR", "PRODUCT": "LAND", "MIN": "LAND", "MAX": "LOR", "BAND": "LAND", "BOR": "LOR", "BXOR": "LXOR"}
"""What MPI calls the ways of joining numbers, and truth values."""


def is_installed() -> bool:
    """Whether mpi4py can be imported."""
    return importlib.util.find_spec("mpi4py") is not None


@cache
def library() -> Any:
    """The module `mpi4py.MPI`, which starts MPI when it is first imported."""
    os.environ.setdefault("UCX_LOG_LEVEL", "error")  # UCX warns of messages that nobody reads any more at the end
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeError(
            "Distributed package doesn't have MPI built in: several processes talk through MPI. Install it with "
            f"pip install 'pullback[mpi]', which brings mpi4py and mpich. ({error})"
        ) from None
    return MPI


@cache
def world() -> MpiCommunicator:
    """The processes that mpiexec started together, with a communicator that no other library uses."""
    comm = library().COMM_WORLD.Dup()
    _unname_shared_memory()
    return MpiCommunicator(comm)


def _unname_shared_memory() -> None:
    """Remove the name of the memory that MPICH's ranks share, once all have it: it then goes with the last of them."""
    maps = Path("/proc/self/maps")
    for name in set(re.findall(r"/dev/shm/mpich_shm_\S+", maps.read_text() if maps.exists() else "")):
        with suppress(OSError):  # another rank of this machine was first
            os.unlink(name)


@cache
def _datatype(dtype: DType) -> Any:
    name = _DATATYPES.get(from_numpy_dtype(dtype).name)
    if name is not None:
        return getattr(library(), name)
    return library().BYTE.Create_contiguous(dtype.itemsize).Commit()


@cache
def _operation(op: RedOpType, dtype: DType) -> Any:
    name = from_numpy_dtype(dtype).name
    if name in _DATATYPES:
        return getattr(library(), (_LOGICAL if name == "bool" else _OPERATIONS)[op.name])
    kind = _OPERATIONS[op.name]

    def join(incoming: Any, own: Any, datatype: Any) -> None:
        join_buffers(kind, dtype, incoming, own)

    return library().Op.Create(join, commute=True)


class MpiRequest:
    """A request of MPI, and whatever memory must live until it is done."""

    __slots__ = ("_kept", "_request", "_status")

    def __init__(self, request: Any, *kept: Any) -> None:
        self._request = request
        self._kept = kept
        self._status = library().Status()

    def is_done(self) -> bool:
        """Whether it is done; asking helps every request of this process along."""
        try:
            return bool(self._request.Test(self._status))
        except library().Exception as error:
            raise DistBackendError(_explained(error)) from None

    def source(self) -> int:
        """The rank whose message was received."""
        return int(self._status.Get_source())


def _explained(error: Any) -> str:
    text = str(error).splitlines()[0]
    if error.Get_error_class() == library().ERR_TRUNCATE:
        return (
            f"Ranks disagree about the size of a message: {text}. Every rank must pass tensors of the same shape and "
            "dtype; TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks that differ before anything is sent."
        )
    return f"MPI failed: {text}"


def _bytes(array: Array | None) -> Any:
    return None if array is None else [array.view("u1"), library().BYTE]


def _shares(array: Array, counts: Sequence[int]) -> Any:
    """Parts of an array, a number of elements for every rank, as bytes."""
    size = array.itemsize
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count * size)
    return [array.view("u1"), [count * size for count in counts], starts[:-1], library().BYTE]


class MpiCommunicator:
    """A communicator of MPI."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank = int(comm.Get_rank())
        self.size = int(comm.Get_size())

    @property
    def comm(self) -> Any:
        """mpi4py's communicator."""
        return self._comm

    def all_reduce(self, array: Array, op: RedOpType) -> Request:
        kept = [array, array.size, _datatype(array.dtype)]
        return MpiRequest(self._comm.Iallreduce(library().IN_PLACE, kept, _operation(op, array.dtype)), array)

    def reduce(self, array: Array, op: RedOpType, root: int) -> Request:
        own = [array, array.size, _datatype(array.dtype)]
        operation = _operation(op, array.dtype)
        if self.rank == root:
            return MpiRequest(self._comm.Ireduce(library().IN_PLACE, own, operation, root), array)
        return MpiRequest(self._comm.Ireduce(own, None, operation, root), array)

    def broadcast(self, array: Array, root: int) -> Request:
        return MpiRequest(self._comm.Ibcast(_bytes(array), root), array)

    def all_gather(self, output: Array, input: Array) -> Request:
        return MpiRequest(self._comm.Iallgather(_bytes(input), _bytes(output)), output, input)

    def gather(self, output: Array | None, input: Array, root: int) -> Request:
        return MpiRequest(self._comm.Igather(_bytes(input), _bytes(output), root), output, input)

    def scatter(self, output: Array, input: Array | None, root: int) -> Request:
        return MpiRequest(self._comm.Iscatter(_bytes(input), _bytes(output), root), output, input)

    def reduce_scatter(self, output: Array, input: Array, op: RedOpType) -> Request:
        datatype = _datatype(input.dtype)
        request = self._comm.Ireduce_scatter_block(
            [input, output.size, datatype], [output, output.size, datatype], _operation(op, input.dtype)
        )
        return MpiRequest(request, output, input)

    def all_to_all(
        self, output: Array, output_counts: Sequence[int], input: Array, input_counts: Sequence[int]
    ) -> Request:
        request = self._comm.Ialltoallv(_shares(input, input_counts), _shares(output, output_counts))
        return MpiRequest(request, output, input)

    def send(self, array: Array, dst: int, tag: int) -> Request:
        return MpiRequest(self._comm.Isend(_bytes(array), dst, tag), array)

    def receive(self, array: Array, src: int | None, tag: int) -> Request:
        return MpiRequest(self._comm.Irecv(_bytes(array), library().ANY_SOURCE if src is None else src, tag), array)

    def barrier(self) -> Request:
        return MpiRequest(self._comm.Ibarrier())

    def duplicate(self) -> MpiCommunicator:
        """The same processes, whose messages do not mix with those of this communicator."""
        return MpiCommunicator(self._comm.Dup())

    def subgroup(self, ranks: Sequence[int], number: int) -> MpiCommunicator:
        members = self._comm.Get_group().Incl(list(ranks))
        return MpiCommunicator(self._comm.Create_group(members, number % 32768))

    def free(self) -> None:
        self._comm.Free()
