"""The demo learns to read digits and leaves its pictures behind."""

from __future__ import annotations

import re
import runpy
import xml.etree.ElementTree
from pathlib import Path

import pytest

DEMO = Path(__file__).parent.parent.parent / "examples" / "demo.py"


@pytest.mark.slow
def test_demo_trains_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = runpy.run_path(str(DEMO))
    monkeypatch.setitem(names["main"].__globals__, "OUTPUT", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # PyTorch is compared with in tests/parity
    names["main"]()
    output = capsys.readouterr().out
    (accuracy,) = re.findall(r"^loss .* test accuracy ([\d.]+)%", output, re.MULTILINE)
    assert float(accuracy) > 90
    assert "first.weight" in output
    assert "PyTorch is not installed here" in output
    assert "pullback view train.py" in output
    assert {path.name for path in tmp_path.iterdir()} == {"demo.svg", "graph.html"}
    picture = xml.etree.ElementTree.parse(tmp_path / "demo.svg").getroot()
    words = " ".join(picture.itertext())
    for part in ("loss of each step", "test accuracy", "digits as read", "the graph behind the loss", "epoch", "100%"):
        assert part in words
