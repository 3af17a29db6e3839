"""The archives that ZipWriter makes, as Python's zipfile sees them."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from pullback.serialization import zip_writer
from pullback.serialization.zip_reader import ZipReader
from pullback.serialization.zip_writer import ALIGNMENT, ZipWriter


def written(*records: tuple[str, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    writer = ZipWriter(file, "archive")
    for name, content in records:
        writer.write_record(name, content)
    writer.finish()
    return file


def test_zipfile_reads_what_was_written() -> None:
    with zipfile.ZipFile(written(("data.pkl", b"abc"), ("data/0", b""), ("version", b"3\n"))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["archive/data.pkl", "archive/data/0", "archive/version"]
        assert archive.read("archive/data.pkl") == b"abc"


@pytest.mark.parametrize("length", [1, 5, 31, 64])
def test_every_record_starts_at_a_multiple_of_the_alignment(length: int) -> None:
    file = written(("a" * length, b"x" * 7), ("b", b"y"))
    raw = file.getvalue()
    for entry in zipfile.ZipFile(file).infolist():
        name_length, extra_length = struct.unpack("<HH", raw[entry.header_offset + 26 : entry.header_offset + 30])
        assert (entry.header_offset + 30 + name_length + extra_length) % ALIGNMENT == 0


def test_records_beyond_the_32_bit_limit_use_the_64_bit_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_writer, "_LIMIT_32", 100)
    header = zip_writer._local_header(b"archive/x", 150, 1, 0)
    assert struct.unpack("<HHQQ", header[39:59]) == (1, 16, 150, 150)
    assert len(header) % ALIGNMENT == 0
    entry = zip_writer._directory_entry(b"archive/x", 150, 1, 200)
    assert struct.unpack("<HHQQQ", entry[-28:]) == (1, 24, 150, 150, 200)
    assert zip_writer._end_of_directory(1, 40, 200).startswith(b"PK\x06\x06")


def test_an_archive_with_64_bit_end_record_is_read() -> None:
    records = [(f"data/{index}", b"") for index in range(0x10000)]
    reader = ZipReader(written(*records))
    assert reader.has_record("data/65535")


def test_serialization_id_depends_on_the_records() -> None:
    first, second = ZipWriter(io.BytesIO(), "a"), ZipWriter(io.BytesIO(), "a")
    first.write_record("data/0", b"1")
    second.write_record("data/0", b"2")
    assert first.serialization_id() != second.serialization_id()
    assert len(first.serialization_id()) == 40
