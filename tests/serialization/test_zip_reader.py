"""Damaged and hostile archives are refused before memory is allocated."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from pullback.serialization.zip_reader import ZipReader
from tests.serialization.crafted import archive

KEY_PHRASE = "PytorchStreamReader failed"


def test_records_are_read_stored_or_deflated() -> None:
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        reader = ZipReader(archive(b"content" * 50, compression=compression))
        assert reader.read_record("data.pkl") == b"content" * 50
        assert reader.record_size("data.pkl") == 350


def test_a_missing_record_is_named() -> None:
    with pytest.raises(RuntimeError, match=rf"{KEY_PHRASE} locating file data/7: file not found"):
        ZipReader(archive(b"")).read_storage("data/7")


@pytest.mark.parametrize("kept", [4, 30, 60, -1, -30])
def test_a_truncated_archive_is_refused(kept: int) -> None:
    data = archive(b"x" * 100).getvalue()
    with pytest.raises(RuntimeError, match=rf"{KEY_PHRASE} reading zip archive"):
        ZipReader(io.BytesIO(data[:kept]))


def test_a_changed_byte_fails_the_checksum() -> None:
    data = bytearray(archive(b"x" * 100).getvalue())
    data[data.index(b"xxx") + 10] = 0
    with pytest.raises(RuntimeError, match="CRC-32 checksum does not match"):
        ZipReader(io.BytesIO(bytes(data))).read_record("data.pkl")


def test_a_record_without_checksum_is_read() -> None:
    data = archive(b"x" * 100).getvalue()
    checksum = struct.pack("<I", zipfile.ZipFile(io.BytesIO(data)).getinfo("archive/data.pkl").CRC)
    assert ZipReader(io.BytesIO(data.replace(checksum, bytes(4)))).read_record("data.pkl") == b"x" * 100


def test_a_compression_bomb_is_refused() -> None:
    bomb = archive(bytes(64 << 20), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="claim to expand to 67108866"):
        ZipReader(bomb)


def test_a_record_larger_than_it_claims_is_refused() -> None:
    data = archive(bytes(1000), compression=zipfile.ZIP_DEFLATED).getvalue()
    claimed = data.replace(struct.pack("<I", 1000), struct.pack("<I", 2000))
    with pytest.raises(RuntimeError, match="decompression failed"):
        ZipReader(io.BytesIO(claimed)).read_record("data.pkl")


def test_overlapping_records_are_refused() -> None:
    data = archive(b"x" * 100, {"data/0": b"y" * 100}).getvalue()
    second = zipfile.ZipFile(io.BytesIO(data)).getinfo("archive/data/0").header_offset
    directory = data.rindex(b"PK\x01\x02", 0, data.rindex(b"PK\x01\x02"))
    overlapping = bytearray(data)
    overlapping[directory + 42 : directory + 46] = struct.pack("<I", 0)
    assert struct.unpack("<I", data[directory + 42 : directory + 46]) == (second,)
    with pytest.raises(RuntimeError, match="overlaps another one"):
        ZipReader(io.BytesIO(bytes(overlapping)))


def test_a_stored_record_beyond_the_file_is_refused() -> None:
    data = archive(b"x" * 100, version=None).getvalue()
    claimed = data.replace(struct.pack("<II", 100, 100), struct.pack("<II", 1 << 30, 1 << 30))
    with pytest.raises(RuntimeError, match="ends beyond the file"):
        ZipReader(io.BytesIO(claimed))


def test_an_archive_without_folder_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("data.pkl", b"")
    with pytest.raises(RuntimeError, match="lies in no folder"):
        ZipReader(file)


def test_an_encrypted_or_exotic_record_is_refused() -> None:
    with pytest.raises(RuntimeError, match="unsupported compression method"):
        ZipReader(archive(b"x", compression=zipfile.ZIP_BZIP2))


def test_storages_read_from_a_file_are_writable(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(archive(b"abc").getvalue())
    with open(path, "rb") as source:
        data = ZipReader(source).read_storage("data.pkl")
    data[0] = 1
    assert data.tobytes() == b"\x01bc"
