"""Files of PyTorch's first format, made by hand as it described them."""

from __future__ import annotations

import io

import pytest

from pullback.serialization import load
from tests.serialization.crafted import tar_file


@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_are_read(weights_only: bool) -> None:
    assert load(tar_file(), weights_only=weights_only)["w"]._array.tolist() == [1, 2, 3]


def test_a_partial_storage_is_read() -> None:
    assert load(tar_file(view=True))["w"]._array.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("file", "phrase"),
    [
        (tar_file(storage_key=9), "Invalid tar checkpoint"),
        (tar_file(size=5), "out of bounds"),
        (tar_file(count=-4), "Invalid tar checkpoint"),
        (tar_file(count=2**60), "Invalid tar checkpoint"),
        (io.BytesIO(tar_file().getvalue()[:1100]), "Invalid tar checkpoint"),
    ],
)
def test_damaged_files_are_refused(file: io.BytesIO, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        load(file)
