"""The safetensors format."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.backend.dtype import ALL, dtype
from pullback.serialization.safetensors import SafetensorError, load, load_file, safe_open, save, save_file
from pullback.tensor.tensor import new_tensor


def file_of(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(element: str = "F32", shape: Any = (2,), begin: int = 0, end: int = 8) -> dict[str, Any]:
    return {"dtype": element, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "element", [element for element in ALL if element.name not in ("complex32", "complex128")], ids=str
)
def test_every_dtype_comes_back(element: dtype) -> None:
    if element.name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    original = new_tensor(np.array([[0, 1], [2, 3]]).astype(element.numpy_dtype))
    actual = load(save({"a": original}))["a"]
    assert actual.dtype is element
    assert actual._array.tolist() == original._array.tolist()


def test_the_layout_is_that_of_the_format() -> None:
    data = save({"b": new_tensor(np.array([1], np.uint8)), "a": new_tensor(np.array([2.0]))}, {"key": "text"})
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"key": "text"},
        "a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
        "b": {"dtype": "U8", "shape": [1], "data_offsets": [8, 9]},
    }
    assert data[8 + length :] == struct.pack("<dB", 2.0, 1)


def test_files_are_read_whole_or_tensor_by_tensor(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"x": new_tensor(np.arange(3.0)), "e": new_tensor(np.ones((0, 2)))}, path, {"k": "v"})
    loaded = load_file(path)
    loaded["x"]._array[0] = 1
    assert loaded["x"]._array.tolist() == [1, 1, 2]
    with safe_open(path, framework="pt") as file:
        assert file.keys() == ["e", "x"]
        assert file.metadata() == {"k": "v"}
        assert file.get_tensor("x")._array.tolist() == [0, 1, 2]
        assert file.get_tensor("e").shape == (0, 2)
        with pytest.raises(SafetensorError, match="File does not contain tensor y"):
            file.get_tensor("y")


def test_what_the_format_cannot_hold_is_refused() -> None:
    values = np.ones((2, 3))
    with pytest.raises(ValueError, match="trying to save a non contiguous tensor"):
        save({"a": new_tensor(values.T)})
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        save({"a": new_tensor(values), "b": new_tensor(values[0])})
    with pytest.raises(SafetensorError, match="complex128, which safetensors does not have"):
        save({"a": new_tensor(np.ones(1, complex))})
    with pytest.raises(SafetensorError, match="expected a dict of names and tensors"):
        save({"a": 1})  # type: ignore[dict-item]  # on purpose


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        (b"", "header too small"),
        (struct.pack("<Q", 10**9) + b"{}", "header too large"),
        (struct.pack("<Q", 1000) + b"{}", "invalid header length"),
        (file_of(b"[]"), "JSON object"),
        (file_of(b"{"), "invalid JSON"),
        (file_of(b"{\xff}"), "invalid JSON"),
        (file_of(b"[" * 100_000), "invalid JSON"),
        (file_of(b'{"a":1,"a":1}'), "occurs twice"),
        (file_of({"a": {}}), "needs a dtype"),
        (file_of({"a": entry("F31")}, bytes(8)), "unsupported dtype"),
        (file_of({"a": entry(shape=(3,))}, bytes(8)), "does not fit its bytes"),
        (file_of({"a": entry(shape=(-2,))}, bytes(8)), "invalid shape"),
        (file_of({"a": entry(shape=(2**40, 2**40))}, bytes(8)), "does not fit its bytes"),
        (file_of({"a": entry(begin=4, end=12)}, bytes(12)), "invalid offset"),
        (file_of({"a": entry(), "b": entry()}, bytes(8)), "invalid offset"),
        (file_of({"a": entry()}, bytes(4)), "not fully covered"),
        (file_of({"a": entry()}, bytes(12)), "not fully covered"),
        (file_of({"__metadata__": {"a": 1}}), "strings to strings"),
    ],
)
def test_damaged_files_are_refused(data: bytes, phrase: str) -> None:
    with pytest.raises(SafetensorError, match=phrase):
        load(data)


@pytest.mark.parametrize("seed", range(100))
def test_a_mutated_file_never_does_worse_than_raise(seed: int) -> None:
    random_bytes = random.Random(seed)
    data = bytearray(save({"a": new_tensor(np.arange(4.0)), "b": new_tensor(np.arange(3))}))
    for _ in range(random_bytes.randint(1, 4)):
        data[random_bytes.randrange(len(data))] = random_bytes.randrange(256)
    with contextlib.suppress(SafetensorError):
        load(bytes(data))
