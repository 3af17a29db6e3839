"""The displayed namespace is one process-wide setting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pullback.backend.naming import display_namespace, set_display_namespace


@pytest.fixture
def _restored() -> Iterator[None]:
    before = display_namespace()
    yield
    set_display_namespace(before)


@pytest.mark.usefixtures("_restored")
def test_namespace_is_pullback_until_it_is_set() -> None:
    assert display_namespace() == "pullback"
    set_display_namespace("torch")
    assert display_namespace() == "torch"
