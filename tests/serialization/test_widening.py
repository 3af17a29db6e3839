"""Files with dtypes of another package load without that package, as wider dtypes that hold every value."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

from pullback.backend import dtype as dtypes
from pullback.backend.dtype import dtype
from pullback.serialization import load, safetensors, save
from pullback.tensor.tensor import Tensor, new_tensor

pytest.importorskip("ml_dtypes")
ELEMENTS = [getattr(dtypes, name) for name in dtypes._EXTENSIONS]


def forget_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for element in ELEMENTS:
        monkeypatch.setattr(element, "_numpy", None)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)


def all_values(element: dtype) -> Tensor:
    codes = np.arange(256 if element.itemsize == 1 else 2**16, dtype=np.uint16)
    return new_tensor((codes.astype(np.uint8) if element.itemsize == 1 else codes).view(element.numpy_dtype))


def expected_of(tensor: Tensor) -> Any:
    return tensor._array.astype(np.complex64 if tensor.dtype.is_complex else np.float32)


def written(value: Any, as_zip: bool) -> io.BytesIO:
    stream = io.BytesIO()
    save(value, stream, _use_new_zipfile_serialization=as_zip)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_every_value_is_kept(element: dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    original = all_values(element)
    expected, stream = expected_of(original), written(original, True)
    forget_package(monkeypatch)

    with pytest.warns(UserWarning, match=f"{element.name} is read as"):
        actual = load(stream)

    assert actual._array.dtype == expected.dtype
    np.testing.assert_array_equal(actual._array, expected)


def test_files_of_the_old_format_load(monkeypatch: pytest.MonkeyPatch) -> None:
    original = all_values(dtypes.bfloat16)
    expected, stream = expected_of(original), written(original, False)
    forget_package(monkeypatch)

    with pytest.warns(UserWarning, match="bfloat16 is read as float32"):
        actual = load(stream)

    np.testing.assert_array_equal(actual._array, expected)


@pytest.mark.parametrize(
    "element", [e for e in ELEMENTS if e.name in safetensors._NAMES], ids=lambda element: element.name
)
def test_safetensors_load(element: dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    original = all_values(element)
    expected, content = expected_of(original), safetensors.save({"w": original})
    forget_package(monkeypatch)

    with pytest.warns(UserWarning, match=f"{element.name} is read as"):
        actual = safetensors.load(content)["w"]

    np.testing.assert_array_equal(actual._array, expected)


@pytest.mark.parametrize("as_zip", [True, False])
def test_views_of_one_storage_still_share_memory(as_zip: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = new_tensor(np.arange(6).astype(dtypes.bfloat16.numpy_dtype).reshape(2, 3))
    stream = written([whole, whole[1, 1:]], as_zip)
    forget_package(monkeypatch)

    with pytest.warns(UserWarning, match="bfloat16"):
        first, second = load(stream)
    second.fill_(7)

    assert first.tolist() == [[0, 1, 2], [3, 7, 7]]


def test_arithmetic_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_package(monkeypatch)

    with pytest.raises(RuntimeError, match=r"bfloat16 needs .* install pullback\[bfloat16\]"):
        new_tensor(np.ones(2, np.float32)).to(dtypes.bfloat16)
