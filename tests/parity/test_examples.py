"""The examples print the same numbers when `torch` is imported in place of pullback."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

for module in ("torch", "torch.func", "torch.utils.checkpoint", "torch.utils.data"):
    pytest.importorskip(module)

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]\d+)?")


def run(path: Path, *, on_torch: bool, capsys: pytest.CaptureFixture[str]) -> str:
    source = path.read_text(encoding="utf-8")
    if on_torch:
        source = source.replace("import pullback as torch\n", "import torch\n").replace("from pullback.", "from torch.")
    exec(compile(source, path.name, "exec"), {"__name__": "__main__", "__file__": str(path)})
    return capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(p.stem for p in EXAMPLES.glob("*.py") if p.name != "demo.py"))
def test_example_prints_the_same_on_both(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = EXAMPLES / f"{name}.py"
    arguments = {"digits": ["--epochs", "2"], "checkpointing": ["--steps", "3"]}.get(name, ["--steps", "12"])
    monkeypatch.setattr(sys, "argv", [path.name, *arguments])
    expected = run(path, on_torch=True, capsys=capsys)
    actual = run(path, on_torch=False, capsys=capsys)
    assert NUMBER.sub("", actual) == NUMBER.sub("", expected)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (actual, expected)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=2e-4)
