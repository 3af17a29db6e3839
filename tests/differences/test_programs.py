"""Every program of programs/*.md prints what PyTorch printed, and raises with the phrase that PyTorch's users know."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differences.running import Program, difference, read_programs, run_programs

PROGRAMS = read_programs()
CASES = [
    pytest.param(program, id=program.name, marks=[pytest.mark.xfail(strict=True)] if program.differs else [])
    for program in PROGRAMS
]


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    return run_programs([program.name for program in PROGRAMS], on_pullback=True)


@pytest.mark.parametrize("program", CASES)
def test_program_does_what_it_does_on_pytorch(program: Program, rows: dict[str, dict[str, Any]]) -> None:
    assert not difference(program, rows[program.name])


def test_a_difference_in_output_or_exception_is_told() -> None:
    program = Program("X", None, "shows", "", "1\nraises ValueError: too small\n")
    row = {"printed": ["1"], "classes": ["ValueError"], "message": "too small: 3", "trace": ""}
    assert not difference(program, row)
    assert "printed" in difference(program, {**row, "printed": ["2"]})
    assert "raised" in difference(program, {**row, "classes": ["TypeError"]})
    assert "lacks" in difference(program, {**row, "message": "small"})
