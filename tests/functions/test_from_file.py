"""from_file: tensors on the contents of files."""

from __future__ import annotations

from pathlib import Path

import pytest

import pullback


def test_a_private_mapping_leaves_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    file.write_bytes(bytes(range(4)))

    x = pullback.from_file(str(file), size=4, dtype=pullback.uint8)
    x.fill_(7)

    assert x.tolist() == [7, 7, 7, 7]
    assert file.read_bytes() == bytes(range(4))


def test_a_shared_mapping_makes_and_writes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "numbers"

    pullback.from_file(str(file), shared=True, size=3, dtype=pullback.uint8).fill_(5)

    assert file.read_bytes() == bytes([5, 5, 5])


def test_a_file_that_is_too_small_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    file.write_bytes(b"abc")

    with pytest.raises(RuntimeError, match="smaller than the required mapping size <16>"):
        pullback.from_file(str(file), size=4)
