"""Reads the records of a checkpoint's zip archive, trusting nothing that the archive says about itself.

Sizes and offsets are compared with the file before memory is allocated: records lie inside the file, do not overlap,
and a compressed record may not expand beyond a bounded ratio.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
import zlib
from typing import IO

from pullback.backend.storage import allocate_bytes, bytes_over, memory_of
from pullback.typing import Array

_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_MAPPED_ALIGNMENT = 16  # that of the widest element: what lies otherwise is copied
_FREE_EXPANSION = 1 << 20
_LARGEST_RATIO = 200
_CHUNK = 1 << 20
_DAMAGED = (
    "The file is not a complete checkpoint: it may have been truncated, changed or transferred wrongly. "
    "Save or download it again."
)


def reader_error(what: str) -> RuntimeError:
    """An archive that cannot be read."""
    return RuntimeError(f"PytorchStreamReader failed {what}. {_DAMAGED}")


class ZipReader:
    """The records under the one folder of a checkpoint archive."""

    def __init__(self, source: IO[bytes], mapping: mmap.mmap | None = None) -> None:
        self._source = source
        self._mapping = mapping
        self._file_size = source.seek(0, os.SEEK_END)
        self._records = self._read_directory()
        self._archive_name = _folder_of(self._records)
        self._check_extents()

    def has_record(self, name: str) -> bool:
        """Whether the archive holds a record of that name."""
        return f"{self._archive_name}/{name}" in self._records

    def record_size(self, name: str) -> int:
        """The size of a record in bytes, as the directory states it."""
        return self._entry(name).file_size

    def read_record(self, name: str) -> bytes:
        """The bytes of a small record."""
        return self.read_storage(name).tobytes()

    def read_storage(self, name: str) -> Array:
        """The bytes of a record as a writable storage; mapped from the file where the reader has a mapping."""
        entry = self._entry(name)
        start = self._data_start(entry)
        if entry.compress_type == zipfile.ZIP_DEFLATED:
            return self._inflate(entry, start)
        if self._mapping is not None and start % _MAPPED_ALIGNMENT == 0:
            return bytes_over(self._mapping, start, entry.file_size)
        data = allocate_bytes(entry.file_size)
        self._source.seek(start)
        _fill(self._source, memory_of(data), entry.filename)
        _check_crc(entry, data)
        return data

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self._records.get(f"{self._archive_name}/{name}")
        if entry is None:
            raise reader_error(f"locating file {name}: file not found")
        return entry

    def _read_directory(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(self._source) as archive:
                entries = archive.infolist()
        except zipfile.BadZipFile as error:
            raise reader_error(f"reading zip archive: failed finding central directory ({error})") from None
        except (struct.error, ValueError, NotImplementedError, EOFError, OSError, RuntimeError) as error:
            raise reader_error(f"reading zip archive: invalid header ({error})") from None
        records = {entry.filename: entry for entry in entries}
        if len(records) != len(entries):
            raise reader_error("reading zip archive: two records have the same name")
        return records

    def _check_extents(self) -> None:
        """No record may leave the file or share bytes with another, so that together they are no larger than it."""
        end = expanded = 0
        for entry in sorted(self._records.values(), key=lambda record: record.header_offset):
            if entry.header_offset < end:
                raise reader_error(f"reading zip archive: record {entry.filename!r} overlaps another one")
            end = entry.header_offset + _LOCAL_HEADER.size + entry.compress_size
            if end > self._file_size:
                raise reader_error(f"reading zip archive: record {entry.filename!r} ends beyond the file")
            _check_compression(entry)
            expanded += entry.file_size
        if expanded > max(_FREE_EXPANSION, _LARGEST_RATIO * self._file_size):
            raise reader_error(
                f"reading zip archive: {self._file_size} bytes claim to expand to {expanded}, "
                f"more than {_LARGEST_RATIO} times as many"
            )

    def _data_start(self, entry: zipfile.ZipInfo) -> int:
        self._source.seek(entry.header_offset)
        header = self._source.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise reader_error(f"reading file {entry.filename}: invalid header or archive is corrupted")
        name_length, extra_length = _LOCAL_HEADER.unpack(header)[-2:]
        start = entry.header_offset + _LOCAL_HEADER.size + int(name_length) + int(extra_length)
        if start + entry.compress_size > self._file_size:
            raise reader_error(f"reading file {entry.filename}: it ends beyond the file")
        return start

    def _inflate(self, entry: zipfile.ZipInfo, start: int) -> Array:
        data = allocate_bytes(entry.file_size)
        target = memory_of(data)
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self._source.seek(start)
        remaining, written = entry.compress_size, 0
        pending = b""
        try:
            while written < entry.file_size and (remaining or pending):
                if not pending:
                    pending = self._source.read(min(_CHUNK, remaining))
                    remaining = remaining - len(pending) if pending else 0
                piece = inflater.decompress(pending, entry.file_size - written)
                pending = inflater.unconsumed_tail
                target[written : written + len(piece)] = piece
                written += len(piece)
        except zlib.error as error:
            raise reader_error(f"reading file {entry.filename}: decompression failed ({error})") from None
        if written != entry.file_size:
            raise reader_error(f"reading file {entry.filename}: decompression failed (it ends early)")
        _check_crc(entry, data)
        return data


def _folder_of(records: dict[str, zipfile.ZipInfo]) -> str:
    if not records:
        raise reader_error("finding the archive's folder: the archive holds no records")
    first = next(iter(records))
    folder, slash, _ = first.partition("/")
    if not slash or not folder:
        raise reader_error(f"finding the archive's folder: record {first!r} lies in no folder")
    return folder


def _check_compression(entry: zipfile.ZipInfo) -> None:
    if entry.flag_bits & 1:
        raise reader_error(f"reading file {entry.filename}: it is encrypted")
    if entry.compress_type == zipfile.ZIP_STORED:
        if entry.file_size != entry.compress_size:
            raise reader_error(f"reading file {entry.filename}: a stored record states two sizes")
        return
    if entry.compress_type != zipfile.ZIP_DEFLATED:
        raise reader_error(f"reading file {entry.filename}: unsupported compression method {entry.compress_type}")


def _fill(source: IO[bytes], target: memoryview, name: str) -> None:
    filled = 0
    while filled < len(target):
        count = _read_into(source, target[filled:])
        if not count:
            raise reader_error(f"reading file {name}: file read failed")
        filled += count


def _read_into(source: IO[bytes], target: memoryview) -> int:
    if isinstance(source, (io.BufferedIOBase, io.RawIOBase)):
        return source.readinto(target) or 0
    piece = source.read(min(_CHUNK, len(target)))
    target[: len(piece)] = piece
    return len(piece)


def _check_crc(entry: zipfile.ZipInfo, data: Array) -> None:
    # PyTorch can be told not to compute checksums; it then writes 0.
    if entry.CRC and zlib.crc32(memory_of(data)) != entry.CRC:
        raise reader_error(f"reading file {entry.filename}: its CRC-32 checksum does not match its content")
