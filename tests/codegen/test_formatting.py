"""The formatter of generated code: one version of it, and run only on what changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.codegen import formatting
from tools.codegen.formatting import drop_old, format_python, pinned_version


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were given to the formatter, which puts a comment before each."""
    seen: list[str] = []

    def run(arguments: list[str], text: str, name: str) -> str:
        if arguments == ["--version"]:
            return "ruff " + pinned_version((formatting.ROOT / "pyproject.toml").read_text())
        seen.append(text)
        return f"# formatted\n{text}"

    monkeypatch.setattr(formatting, "_run_ruff", run)
    formatting._settings.cache_clear()
    return seen


def test_a_text_is_formatted_once(tmp_path: Path, runs: list[str]) -> None:
    path = tmp_path / "family.py"
    made = [format_python("x = 1", path, tmp_path / "kept") for _ in range(3)]
    assert made == ["# formatted\nx = 1"] * 3
    assert runs == ["x = 1"]


def test_another_text_and_another_file_are_formatted_again(tmp_path: Path, runs: list[str]) -> None:
    for name, text in (("a", "x = 1"), ("a", "x = 2"), ("b", "x = 2")):
        format_python(text, tmp_path / f"{name}.py", tmp_path / "kept")
    assert runs == ["x = 1", "x = 2", "x = 2"]


def test_the_oldest_texts_are_dropped(tmp_path: Path, runs: list[str]) -> None:
    for number in range(5):
        format_python(f"x = {number}", tmp_path / "a.py", tmp_path / "kept")
    drop_old(2, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_another_version_of_the_formatter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer: Callable[..., str] = lambda *arguments: "ruff 0.0.1"  # noqa: E731
    monkeypatch.setattr(formatting, "_run_ruff", answer)
    formatting._settings.cache_clear()
    with pytest.raises(RuntimeError, match=r"formatted by ruff \d+\.\d+\.\d+, and this is 0\.0\.1"):
        formatting._settings()
    formatting._settings.cache_clear()
