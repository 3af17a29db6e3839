"""Which Python runs a framework, and where it finds it."""

from __future__ import annotations

import sys

import pytest

from benchmarks.comparison import Interpreters
from benchmarks.machine import describe
from benchmarks.startup import import_seconds


def test_both_run_here_unless_another_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "src")
    here = Interpreters()
    assert here.command("torch") == here.command("pullback") == [sys.executable]
    assert here.environment("pullback")["PYTHONPATH"] == "src"


def test_an_installed_pullback_is_not_hidden_by_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "src")
    elsewhere = Interpreters("another/python")
    assert elsewhere.command("pullback") == ["another/python"]
    assert elsewhere.command("torch") == [sys.executable]
    assert "PYTHONPATH" not in elsewhere.environment("pullback")
    assert elsewhere.environment("torch")["PYTHONPATH"] == "src"


def test_the_description_says_how_pullback_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    assert describe(Interpreters())["pullback"][0].startswith("pullback ")


def test_imports_are_timed_in_a_process_of_their_own() -> None:
    assert 0 < import_seconds("json", Interpreters()) < 10
