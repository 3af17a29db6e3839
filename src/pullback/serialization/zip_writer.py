"""Writes the zip archive of a checkpoint: stored records, each starting at a multiple of 64 bytes.

Alignment lets a reader map the file and use its bytes as arrays. The archive is written in one pass, so that the
output needs only a `write` method.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Protocol

ALIGNMENT = 64
_LIMIT_32 = 0xFFFFFFFF
_UTF8_NAME = 0x0800
_PADDING_FIELD = 0x4246  # an extra field marked "FB", as PyTorch marks its padding
_ZIP64_FIELD = 0x0001
_DATE_1980 = 0x0021


class Writable(Protocol):
    """What a checkpoint can be written to."""

    def write(self, data: bytes | memoryview, /) -> object:
        """Append `data`."""


class ZipWriter:
    """An archive whose records lie under one folder, as PyTorch's reader expects."""

    def __init__(self, output: Writable, archive_name: str, with_checksums: bool = True) -> None:
        self._output = output
        self._with_checksums = with_checksums
        self._archive_name = archive_name
        self._position = 0
        self._directory: list[bytes] = []
        self._fingerprint = hashlib.sha256()

    def write_record(self, name: str, data: bytes | memoryview) -> None:
        """Append one record."""
        encoded = f"{self._archive_name}/{name}".encode()
        size = len(data)
        checksum = zlib.crc32(data) if self._with_checksums else 0
        self._fingerprint.update(struct.pack("<IQ", checksum, size) + name.encode())
        start = self._position
        self._write(_local_header(encoded, size, checksum, start))
        if size:
            self._write(data)
        self._directory.append(_directory_entry(encoded, size, checksum, start))

    def serialization_id(self) -> str:
        """40 digits that differ between archives whose records differ."""
        return f"{int.from_bytes(self._fingerprint.digest(), 'little') % 10**40:040d}"

    def finish(self) -> None:
        """Write the directory that makes the archive complete."""
        start = self._position
        for entry in self._directory:
            self._write(entry)
        self._write(_end_of_directory(len(self._directory), self._position - start, start))

    def _write(self, data: bytes | memoryview) -> None:
        remaining = memoryview(data)
        while remaining:
            # An unbuffered file may take less than it is given, and says how much.
            written = self._output.write(remaining)
            remaining = remaining[written if isinstance(written, int) else len(remaining) :]
        self._position += len(data)


def _local_header(name: bytes, size: int, checksum: int, start: int) -> bytes:
    large = size >= _LIMIT_32
    extra = struct.pack("<HHQQ", _ZIP64_FIELD, 16, size, size) if large else b""
    unpadded = start + 30 + len(name) + len(extra) + 4
    padding = -unpadded % ALIGNMENT
    extra += struct.pack("<HH", _PADDING_FIELD, padding) + b"Z" * padding
    shown = _LIMIT_32 if large else size
    fields = (45 if large else 20, _UTF8_NAME, 0, 0, _DATE_1980, checksum, shown, shown, len(name), len(extra))
    return struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", *fields) + name + extra


def _directory_entry(name: bytes, size: int, checksum: int, start: int) -> bytes:
    wide = [value for value in (size, size, start) if value >= _LIMIT_32]
    extra = struct.pack(f"<HH{len(wide)}Q", _ZIP64_FIELD, 8 * len(wide), *wide) if wide else b""
    version = 45 if wide else 20
    shown = min(size, _LIMIT_32)
    fields = (version, version, _UTF8_NAME, 0, 0, _DATE_1980, checksum, shown, shown, len(name), len(extra))
    tail = (0, 0, 0, 0, min(start, _LIMIT_32))
    return struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", *fields, *tail) + name + extra


def _end_of_directory(count: int, size: int, start: int) -> bytes:
    wide = b""
    if count >= 0xFFFF or size >= _LIMIT_32 or start >= _LIMIT_32:
        wide = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
        wide += struct.pack("<4sIQI", b"PK\x06\x07", 0, start + size, 1)
    shown_count = min(count, 0xFFFF)
    fields = (0, 0, shown_count, shown_count, min(size, _LIMIT_32), min(start, _LIMIT_32), 0)
    return wide + struct.pack("<4sHHHHIIH", b"PK\x05\x06", *fields)
