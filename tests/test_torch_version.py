"""A version string compares as a version and is otherwise text."""

from __future__ import annotations

import pytest

from pullback.pytorch.torch_version import TorchVersion


@pytest.mark.parametrize("smaller", ["2.9", "2.12.1", (2, 9), "1.13.0", [2]])
def test_version_is_greater(smaller: object) -> None:
    version = TorchVersion("2.13.0")
    assert version > smaller
    assert version >= smaller
    assert version != smaller
    assert not version < smaller
    assert not version <= smaller


@pytest.mark.parametrize("equal", ["2.13", "2.13.0+cpu", (2, 13), TorchVersion("2.13.0")])
def test_version_is_equal(equal: object) -> None:
    assert TorchVersion("2.13.0") == equal
    assert TorchVersion("2.13.0") >= equal


def test_version_is_text() -> None:
    version = TorchVersion("2.13.0")
    assert isinstance(version, str)
    assert version.split(".") == ["2", "13", "0"]
    assert hash(version) == hash("2.13.0")


def test_version_does_not_compare_with_a_number() -> None:
    assert TorchVersion("2.13.0") != 2
    with pytest.raises(TypeError):
        TorchVersion("2.13.0") < 2
