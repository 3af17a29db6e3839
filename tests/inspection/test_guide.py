"""The programs of the guide run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import pullback

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


@pytest.mark.parametrize("wrong", [3, None, "loss"])
@pytest.mark.parametrize("name", ["explain_grad", "diagnose", "saved_report", "graph_page", "grad_fingerprint"])
def test_what_is_no_tensor_is_refused_by_name(name: str, wrong: Any) -> None:
    if name == "grad_fingerprint" and wrong == "loss":
        wrong = 3.0
    with pytest.raises(TypeError, match=f"{name} expects a .*, got {type(wrong).__name__}"):
        getattr(pullback, name)(wrong)
