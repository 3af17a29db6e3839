"""Communicator: what a process group asks of the library that moves the bytes.

Arrays are flat and contiguous. Everything returns at once with a Request; the arrays must stay as they are until that is
done. MPI (mpi.py) and NCCL (nccl.py) are behind it; `SoleCommunicator` is the group of one process, which needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pullback.distributed.reduce_operation import RedOpType
from pullback.typing import Array

__all__ = ["Communicator", "Request", "SoleCommunicator"]


class Request(Protocol):
    """One thing under way."""

    def is_done(self) -> bool:
        """Whether it is done; asking helps it along."""
        ...

    def source(self) -> int:
        """The rank in the group whose message was received."""
        ...


class Communicator(Protocol):
    """The processes of a group, numbered from 0, and what they can do together."""

    rank: int
    size: int

    def all_reduce(self, array: Array, op: RedOpType) -> Request: ...
    def reduce(self, array: Array, op: RedOpType, root: int) -> Request: ...
    def broadcast(self, array: Array, root: int) -> Request: ...
    def all_gather(self, output: Array, input: Array) -> Request: ...
    def gather(self, output: Array | None, input: Array, root: int) -> Request: ...
    def scatter(self, output: Array, input: Array | None, root: int) -> Request: ...
    def reduce_scatter(self, output: Array, input: Array, op: RedOpType) -> Request: ...
    def all_to_all(
        self, output: Array, output_counts: Sequence[int], input: Array, input_counts: Sequence[int]
    ) -> Request: ...
    def send(self, array: Array, dst: int, tag: int) -> Request: ...
    def receive(self, array: Array, src: int | None, tag: int) -> Request: ...
    def barrier(self) -> Request: ...
    def subgroup(self, ranks: Sequence[int], number: int) -> Communicator:
        """The communicator of some ranks, which all of these make together."""
        ...

    def free(self) -> None: ...


class _Done:
    """What a group of one process has to wait for."""

    def is_done(self) -> bool:
        return True

    def source(self) -> int:
        return 0


class SoleCommunicator:
    """A group of one process: everything is a copy at most."""

    rank = 0
    size = 1

    def all_reduce(self, array: Array, op: RedOpType) -> Request:
        return _Done()

    def reduce(self, array: Array, op: RedOpType, root: int) -> Request:
        return _Done()

    def broadcast(self, array: Array, root: int) -> Request:
        return _Done()

    def all_gather(self, output: Array, input: Array) -> Request:
        output[...] = input
        return _Done()

    def gather(self, output: Array | None, input: Array, root: int) -> Request:
        if output is not None:
            output[...] = input
        return _Done()

    def scatter(self, output: Array, input: Array | None, root: int) -> Request:
        if input is not None:
            output[...] = input
        return _Done()

    def reduce_scatter(self, output: Array, input: Array, op: RedOpType) -> Request:
        return self.all_gather(output, input)

    def all_to_all(
        self, output: Array, output_counts: Sequence[int], input: Array, input_counts: Sequence[int]
    ) -> Request:
        return self.all_gather(output, input)

    def send(self, array: Array, dst: int, tag: int) -> Request:
        raise ValueError("Invalid destination rank: a process cannot talk to itself, and there is no other")

    def receive(self, array: Array, src: int | None, tag: int) -> Request:
        raise ValueError("Invalid source rank: a process cannot talk to itself, and there is no other")

    def barrier(self) -> Request:
        return _Done()

    def subgroup(self, ranks: Sequence[int], number: int) -> Communicator:
        return SoleCommunicator()

    def free(self) -> None:
        pass
