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
from pullback.utils.graph_picture import Detail, read_graph, svg_text

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


def output_of(program: str, scope: dict[str, Any] | None = None) -> str:
    """What a program prints; its warnings and its error too."""
    clear_cuts()
    Sentinel.warned, Sentinel.suspicions, Sentinel.next_look = False, 0, 1
    linecache.cache["program.py"] = (len(program), None, program.splitlines(keepends=True), "program.py")
    out = io.StringIO()
    scope = {} if scope is None else scope
    scope["__name__"] = "program"
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


@pytest.mark.parametrize(("name", "mended"), [("cut_off.svg", False), ("joined.svg", True)])
def test_the_pictures_of_section_4_are_those_of_its_programs(name: str, mended: bool) -> None:
    program = next(
        text for text, expected in programs() if expected.startswith("every parameter has") == mended and "Net" in text
    )
    scope: dict[str, Any] = {}
    output_of(program, scope)
    drawn = svg_text(read_graph(scope["loss"], scope["net"], Detail()))
    assert drawn == (GUIDE.parent / "pictures" / name).read_text(encoding="utf-8")
