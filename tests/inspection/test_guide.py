"""The programs of the guide run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "inspection.md"


def test_the_programs_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)):
        exec(compile(block, f"<block {number} of the guide>", "exec"), scope)
    printed = capsys.readouterr().out
    for title in (
        "Saved for backward",
        "Time by module",
        "dropped and computed again",
        "first difference",
        "node by node",
    ):
        assert title in printed
