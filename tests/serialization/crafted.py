"""Checkpoints made by hand: archives around any pickle, and pickles of tensors with any numbers in them."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Mapping, Sequence

SIX_FLOATS = struct.pack("<6f", *range(6))


def archive(
    pickled: bytes | None,
    records: Mapping[str, bytes] | None = None,
    version: bytes | None = b"3\n",
    compression: int = zipfile.ZIP_STORED,
) -> io.BytesIO:
    """A zip checkpoint of these records."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        if pickled is not None:
            target.writestr("archive/data.pkl", pickled)
        for name, content in (records or {}).items():
            target.writestr(f"archive/{name}", content)
        if version is not None:
            target.writestr("archive/version", version)
    file.seek(0)
    return file


def tensor_pickle(
    storage: str = "torch\nFloatStorage",
    key: str = "0",
    location: str = "cpu",
    count: int = 6,
    offset: int = 0,
    size: Sequence[int] = (2, 3),
    stride: Sequence[int] = (3, 1),
) -> bytes:
    """The pickle of one tensor, as PyTorch writes it."""
    identifier = text("storage") + b"c" + storage.encode() + b"\n" + text(key) + text(location) + integer(count)
    geometry = integer(offset) + integers(size) + integers(stride)
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((" + identifier + b"tQ" + geometry
        + b"\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip


def integer(value: int) -> bytes:
    encoded = pickle.encode_long(value)
    return pickle.LONG1 + bytes([len(encoded)]) + encoded


def integers(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(integer(value) for value in values) + b"t"


def text(value: str) -> bytes:
    encoded = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(encoded)) + encoded


def tar_file(*, storage_key: int = 1, size: int = 3, count: int = 4, view: bool = False) -> io.BytesIO:
    """A file of PyTorch's first format with one storage and one tensor, optionally over a part of the storage."""
    target = 2 if view else storage_key
    storages = (
        pickle.dumps(1, 2) + b"\x80\x02(" + integer(1) + text("cpu") + b"ctorch\nFloatStorage\nt."
        + struct.pack("<q4f", count, 1, 2, 3, 4) + pickle.dumps([(2, 1, 1, 3)] if view else [], 2)
    )  # fmt: skip
    tensors = (
        pickle.dumps(1, 2) + b"\x80\x02(" + integer(7) + integer(target) + b"ctorch\nFloatTensor\nt."
        + struct.pack("<ii", 1, 0) + struct.pack("<qqq", size, 1, 0)
    )  # fmt: skip
    members = {"storages": storages, "tensors": tensors, "pickle": b"\x80\x02}" + text("w") + text("7") + b"Qs."}
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    file.seek(0)
    return file
