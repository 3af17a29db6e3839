"""Tests here wait for the compiler, so that what they compare is compiled."""

from __future__ import annotations

import pytest

from pullback.compiling import backend


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "PATIENCE", 300.0)
