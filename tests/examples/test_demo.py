"""The demo learns to read digits and leaves its pictures behind."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).parent.parent.parent / "examples" / "demo.py"


@pytest.mark.slow
def test_demo_trains_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = runpy.run_path(str(DEMO))
    monkeypatch.setitem(names["main"].__globals__, "OUTPUT", tmp_path)
    names["main"]()
    output = capsys.readouterr().out
    (accuracy,) = re.findall(r"^loss .* test accuracy ([\d.]+)%", output, re.MULTILINE)
    assert float(accuracy) > 90
    assert "first.weight" in output
    assert {path.name for path in tmp_path.iterdir()} == {"graph.svg", "loss.svg"}
