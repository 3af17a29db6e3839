"""The demo learns the same with PyTorch as with pullback, and says so."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).parent.parent.parent / "examples" / "demo.py"


@pytest.mark.slow
def test_the_demo_compares_itself_with_pytorch() -> None:
    pytest.importorskip("torch")
    names = runpy.run_path(str(DEMO))
    names["torch"].manual_seed(0)
    training = names["Training"](names["DigitReader"](), None)
    training.run()
    text = names["compare_with_pytorch"](training)
    (apart,) = re.findall(r"differ by at most (\S+)", text)
    assert float(apart) < 1e-3
