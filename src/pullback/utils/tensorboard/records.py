"""Event files as TensorBoard reads them: records with checksums, and the few protocol-buffer fields that they need.

TensorBoard's own writer would bring gRPC, protobuf and a web server along; the format is small.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterable
from functools import cache
from itertools import count
from pathlib import Path

_numbers = count()


def varint(value: int) -> bytes:
    """An integer in groups of seven bits, the lowest first."""
    value &= (1 << 64) - 1
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field of a message: an integer, a double, a text or a message."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def float_field(number: int, value: float) -> bytes:
    """One field with a number in single precision."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


def packed(number: int, values: Iterable[float], code: str) -> bytes:
    """One field with many numbers; `code` is that of `struct`."""
    return field(number, b"".join([struct.pack(f"<{code}", v) for v in values]))


@cache
def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def checksum(data: bytes) -> int:
    """The masked CRC-32C of a record's part.

    >>> hex(checksum(b"123456789"))
    '0xc78ab0e5'
    """
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """An event between its length and its checksums."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data))


class RecordWriter:
    """Appends records to a file; several threads may."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115 (closed by close())
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Append one record."""
        with self._lock:
            self._file.write(record(data))

    def flush(self) -> None:
        """Hand what was written to the system."""
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._file.close()


class FileWriter:
    """Writes summaries to an event file of its own in a folder."""

    def __init__(
        self, log_dir: str | os.PathLike[str], max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        folder = Path(log_dir)
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{filename_suffix}"
        self._folder = str(log_dir)
        self._flush_after, self._flushed = flush_secs, now
        self._records = RecordWriter(folder / name)
        self._records.write(field(1, now) + field(3, "brain.Event:2"))

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self._folder

    def add_summary(self, summary: bytes, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a summary as an event of now."""
        now = time.time()
        step = field(2, int(global_step)) if global_step else b""
        self._records.write(field(1, float(now if walltime is None else walltime)) + step + summary)
        if now - self._flushed > self._flush_after:
            self.flush()

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._flushed = time.time()
        self._records.flush()

    def close(self) -> None:
        """Close the file."""
        self._records.close()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
