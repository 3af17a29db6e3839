"""The same programs on torch.fx report the same on PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.fx.programs import PROGRAMS

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_report_the_same(program: Any) -> None:
    assert program(pullback) == program(torch)
