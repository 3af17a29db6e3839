"""A communicator for arrays of every device: those in main memory go through MPI, those of a GPU through NCCL.

Where there is no NCCL, or it cannot serve (two ranks that share a GPU), arrays of a device are copied to main memory,
sent by MPI, and copied back, as gloo does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pullback.backend.device_array import DeviceArray
from pullback.distributed.communicator import Communicator, Request
from pullback.distributed.mpi import MpiCommunicator
from pullback.distributed.reduce_operation import RedOpType
from pullback.typing import Array

if TYPE_CHECKING:
    from pullback.distributed.nccl import NcclCommunicator

__all__ = ["CommunicatorByDevice"]


class _CopyingBack:
    """A request on copies in main memory; the result is copied back when it is done."""

    def __init__(self, request: Request, result: Any, copy: Array) -> None:
        self._request = request
        self._result = result
        self._copy = copy

    def is_done(self) -> bool:
        if not self._request.is_done():
            return False
        if isinstance(self._result, DeviceArray):
            self._result[...] = self._result.library.wrap(self._result.library.upload(self._copy))
            self._result = None
        return True

    def source(self) -> int:
        return self._request.source()


class CommunicatorByDevice:
    """Chooses who carries an array; every method is that of `Communicator`."""

    def __init__(self, host: MpiCommunicator, device: NcclCommunicator | None = None) -> None:
        self.rank, self.size = host.rank, host.size
        self._host = host
        self._device = device

    def wait_by(self, wait: Callable[[Request], None]) -> None:
        """Wait this way for other ranks before the first message of a GPU."""
        if self._device is not None:
            self._device.wait = wait

    def together(self, arrays: Sequence[Array]) -> AbstractContextManager[None]:
        """A block whose messages, with these arrays, begin at once. All ranks of the group are in one."""
        gpus = {array.raw.device.id for array in arrays if isinstance(array, DeviceArray)}
        return nullcontext() if self._device is None or not gpus else self._device.together(gpus)

    def _run(self, arrays: Sequence[Array | None], written: int, call: Callable[..., Request]) -> Request:
        """Run `call(communicator, *arrays)` where the arrays are; the one at `written` gets the result (-1: none does)."""
        on_device = [isinstance(array, DeviceArray) for array in arrays]
        if not any(on_device):
            return call(self._host, *arrays)
        if self._device is not None:
            return call(self._device, *arrays)
        copies: list[Any] = [
            array.library.download(array.raw) if isinstance(array, DeviceArray) else array for array in arrays
        ]
        result = arrays[written] if written >= 0 else None
        return _CopyingBack(call(self._host, *copies), result, copies[written])

    def all_reduce(self, array: Array, op: RedOpType) -> Request:
        return self._run([array], 0, lambda comm, array: comm.all_reduce(array, op))

    def reduce(self, array: Array, op: RedOpType, root: int) -> Request:
        return self._run([array], 0, lambda comm, array: comm.reduce(array, op, root))

    def broadcast(self, array: Array, root: int) -> Request:
        return self._run([array], 0, lambda comm, array: comm.broadcast(array, root))

    def all_gather(self, output: Array, input: Array) -> Request:
        return self._run([output, input], 0, lambda comm, output, input: comm.all_gather(output, input))

    def gather(self, output: Array | None, input: Array, root: int) -> Request:
        return self._run([output, input], 0, lambda comm, output, input: comm.gather(output, input, root))

    def scatter(self, output: Array, input: Array | None, root: int) -> Request:
        return self._run([output, input], 0, lambda comm, output, input: comm.scatter(output, input, root))

    def reduce_scatter(self, output: Array, input: Array, op: RedOpType) -> Request:
        return self._run([output, input], 0, lambda comm, output, input: comm.reduce_scatter(output, input, op))

    def all_to_all(
        self, output: Array, output_counts: Sequence[int], input: Array, input_counts: Sequence[int]
    ) -> Request:
        return self._run(
            [output, input], 0, lambda comm, output, input: comm.all_to_all(output, output_counts, input, input_counts)
        )

    def send(self, array: Array, dst: int, tag: int) -> Request:
        return self._run([array], -1, lambda comm, array: comm.send(array, dst, tag))

    def receive(self, array: Array, src: int | None, tag: int) -> Request:
        return self._run([array], 0, lambda comm, array: comm.receive(array, src, tag))

    def barrier(self) -> Request:
        return (self._device or self._host).barrier()

    def duplicate(self) -> MpiCommunicator:
        """The same processes in main memory, for what ranks compare before they begin."""
        return self._host.duplicate()

    def subgroup(self, ranks: Sequence[int], number: int) -> Communicator:
        host = self._host.subgroup(ranks, number)
        return CommunicatorByDevice(host, None if self._device is None else self._device.subgroup(ranks, number))

    def free(self) -> None:
        if self._device is not None:
            self._device.free()
        self._host.free()
