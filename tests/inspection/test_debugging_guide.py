"""Every program of docs/debugging_gradients.md prints what the guide says."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from pullback.autograd.graph import record_source_lines
from pullback.engine.leaks import Sentinel
from pullback.modes.cuts import clear_cuts

GUIDE = Path(__file__).parents[2] / "docs" / "debugging_gradients.md"
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)


def programs() -> list[tuple[str, str]]:
    """Each program with the text that follows it, "" where none does."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        if kind == "python":
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], text)
    return found


def output_of(program: str) -> str:
    """What a program prints; its warnings and its error too."""
    clear_cuts()
    Sentinel.warned = False
    linecache.cache["program.py"] = (len(program), None, program.splitlines(keepends=True), "program.py")
    out = io.StringIO()
    scope: dict[str, Any] = {"__name__": "program"}
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught, record_source_lines():
        warnings.simplefilter("always")
        try:
            exec(compile(program, "program.py", "exec"), scope)
        except RuntimeError as error:
            print(f"{type(error).__name__}: {error}")
        for warning in caught:
            print(f"UserWarning: {warning.message}")
    return out.getvalue()


@pytest.mark.parametrize(("program", "expected"), programs(), ids=range(1, len(programs()) + 1))
def test_a_program_of_the_guide_prints_what_it_says(program: str, expected: str) -> None:
    assert output_of(program).split() == expected.split()
