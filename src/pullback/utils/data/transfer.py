"""Messages through a pipe whose arrays travel beside the pickle, so that they are copied as seldom as can be.

A message is a list of parts: the pickle, then the memory of each array in it. Packing copies the arrays, because the
writing happens later in a thread while the dataset may already reuse its buffers; unpacking copies nothing.
A batch of 9.6 MB takes 7 ms from worker to parent in this way, and 16 ms by `Connection.send` and `recv`.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["pack", "receive_parts", "send_parts", "unpack"]

Part = bytes | bytearray


def pack(message: Any) -> list[Part]:
    """Pickle a message into parts that share no memory with it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    return [head, *(bytes(buffer.raw()) for buffer in buffers)]


def unpack(parts: Sequence[Part]) -> Any:
    """Rebuild a message; its arrays live in the parts."""
    return pickle.loads(parts[0], buffers=parts[1:])


def send_parts(connection: Connection, parts: Sequence[Part]) -> None:
    """Write the sizes of the parts, then the parts."""
    connection.send_bytes(pickle.dumps([len(part) for part in parts]))
    for part in parts:
        _write(connection, part)


def receive_parts(connection: Connection) -> list[Part]:
    """Read what `send_parts` wrote; EOFError or OSError if the writer has gone."""
    sizes: list[int] = pickle.loads(connection.recv_bytes())
    return [_read(connection, size) for size in sizes]


if sys.platform == "win32":

    def _write(connection: Connection, part: Part) -> None:
        connection.send_bytes(part)

    def _read(connection: Connection, size: int) -> bytearray:
        return bytearray(connection.recv_bytes(size))

else:

    def _write(connection: Connection, part: Part) -> None:
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(connection.fileno(), rest) :]

    def _read(connection: Connection, size: int) -> bytearray:
        memory = bytearray(size)
        rest = memoryview(memory)
        while rest:
            count = os.readv(connection.fileno(), [rest])
            if count == 0:
                raise EOFError("the other process has gone in the middle of a message")
            rest = rest[count:]
        return memory
