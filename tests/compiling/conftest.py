"""Tests here wait for the compiler, and run small programs too, so that what they compare is compiled."""

from __future__ import annotations

import pytest

from pullback.compiling import backend, entries


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "PATIENCE", 300.0)
    monkeypatch.setattr(entries, "MOST_SMALL_CALLS", [0, 0])
