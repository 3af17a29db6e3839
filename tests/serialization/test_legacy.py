"""Files of the format before PyTorch 1.6."""

from __future__ import annotations

import io
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.serialization import load, save
from pullback.serialization.legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from pullback.tensor.tensor import new_tensor
from tests.serialization.crafted import integer, integers, text

STORAGE = text("storage") + b"ctorch\nFloatStorage\n"


def legacy_file(
    body: bytes, storages: dict[str, bytes], *, little_endian: bool = True, magic: int = MAGIC_NUMBER
) -> io.BytesIO:
    header = (magic, PROTOCOL_VERSION, {"little_endian": little_endian})
    pickles = b"".join(pickle.dumps(part, 2) for part in header) + body + pickle.dumps(list(storages), 2)
    content = [struct.pack("<q", len(data) // 4) + data for data in storages.values()]
    return io.BytesIO(pickles + b"".join(content))


def tensor_with_view(view: bytes = b"N", count: int = 4, metadata: bytes = b"", size: int = 2) -> bytes:
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((" + STORAGE + text("k") + text("cpu") + integer(count) + view
        + b"tQ" + integer(0) + integers([size]) + integers([1])
        + b"\x89ccollections\nOrderedDict\n)R" + metadata + b"tR."
    )  # fmt: skip


FOUR = struct.pack("<4f", 1, 2, 3, 4)


@pytest.mark.parametrize("weights_only", [True, False])
def test_written_files_are_read(tmp_path: Path, weights_only: bool) -> None:
    path = tmp_path / "old.pt"
    save([new_tensor(np.arange(3.0)), {"a": 1}], path, _use_new_zipfile_serialization=False)
    actual = load(path, weights_only=weights_only)
    assert actual[0]._array.tolist() == [0, 1, 2]
    assert actual[1] == {"a": 1}


def test_several_objects_are_read_from_one_stream() -> None:
    file = io.BytesIO()
    for value in (1.0, 2.0):
        save(new_tensor(np.array([value])), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [load(file)._array.tolist(), load(file, weights_only=False)._array.tolist()] == [[1.0], [2.0]]


def test_a_partial_storage_is_a_view_of_the_whole() -> None:
    view = b"(" + text("part") + integer(1) + integer(2) + b"t"
    assert load(legacy_file(tensor_with_view(view), {"k": FOUR}))._array.tolist() == [2, 3]


def test_pending_negation_is_done_after_the_bytes_are_read() -> None:
    negated = tensor_with_view(metadata=b"}" + text("neg") + b"\x88s")
    assert load(legacy_file(negated, {"k": FOUR}))._array.tolist() == [-1, -2]


def test_the_other_byte_order_is_undone() -> None:
    data = struct.pack(">4f", 1, 2, 3, 4)
    assert load(legacy_file(tensor_with_view(), {"k": data}, little_endian=False))._array.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("file", "phrase"),
    [
        (legacy_file(b"\x80\x02N.", {}, magic=5), "Invalid magic number; corrupt file"),
        (legacy_file(tensor_with_view(count=10**12), {"k": FOUR}), "does not match expected size"),
        (legacy_file(tensor_with_view(size=5), {"k": FOUR}), "out of bounds"),
        (legacy_file(tensor_with_view(), {"other": FOUR}), "does not match those that the object uses"),
        (legacy_file(tensor_with_view(), {"k": FOUR[:8]}), "unexpected EOF|does not match"),
        (legacy_file(tensor_with_view(b"(" + text("p") + integer(3) + integer(2) + b"t"), {"k": FOUR}), "outside of"),
    ],
)
def test_damaged_files_are_refused(file: io.BytesIO, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        load(file)


@pytest.mark.parametrize("missing", [1, 8, 16, 20, 60])
def test_truncated_files_are_refused(missing: int) -> None:
    data: Any = legacy_file(tensor_with_view(), {"k": FOUR}).getvalue()
    with pytest.raises((RuntimeError, EOFError)):
        load(io.BytesIO(data[:-missing]))
