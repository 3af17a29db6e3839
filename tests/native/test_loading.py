"""The extension module is used only where it fits the sources."""

from __future__ import annotations

from types import ModuleType

import pytest

from pullback import native


def test_kernels_of_other_sources_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULLBACK_NATIVE", raising=False)
    monkeypatch.setattr(native, "import_module", ModuleType)
    with pytest.warns(UserWarning, match="were compiled from other sources, NumPy's are used"):
        assert native._load() is None


def test_kernels_that_do_not_load_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> ModuleType:
        raise ImportError(f"{name}: undefined symbol")

    monkeypatch.delenv("PULLBACK_NATIVE", raising=False)
    monkeypatch.setattr(native, "import_module", fail)
    with pytest.warns(UserWarning, match=r"do not load, NumPy's are used: pullback.native.kernels: undefined symbol"):
        assert native._load() is None
