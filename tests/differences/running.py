"""Reads the programs of programs/*.md and runs each in a process of its own, on PyTorch or on pullback.

`python -m tests.differences.running --record` writes what PyTorch prints into the files, under each program.
`python -m tests.differences.running E1 V6` shows what pullback prints for these, beside what was recorded.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "programs"
ROOT = FOLDER.parents[2]
ENTRY = re.compile(
    r"^## (?P<name>\S+) (?P<differs>\(differs\) )?(?P<title>[^\n]*)\n\n```python\n(?P<code>.*?)^```\n\n```text\n(?P<output>.*?)^```\n",
    re.M | re.S,
)
ADDRESS = re.compile(r"0x[0-9a-f]+")
RAISES = "raises "


@dataclass(frozen=True)
class Program:
    """A program, what it shows, and what PyTorch printed; an uncaught exception is the last line, after "raises".

    A title that begins with "(differs)" says that pullback does not do the same yet.
    """

    name: str
    differs: str | None
    title: str
    code: str
    output: str

    @property
    def printed(self) -> list[str]:
        """The lines that were printed."""
        return self.output.splitlines()[: -1 if self.exception else None]

    @property
    def exception(self) -> tuple[str, str] | None:
        """The class of the uncaught exception and the first sentence of its message."""
        lines = self.output.splitlines()
        if not lines or not lines[-1].startswith(RAISES):
            return None
        kind, _, message = lines[-1].removeprefix(RAISES).partition(": ")
        return kind, message


def read_programs() -> list[Program]:
    """Read the programs of every file, in order."""
    return [Program(**match.groupdict()) for file in sorted(FOLDER.glob("*.md")) for match in _entries(file)]


def _entries(file: Path) -> Iterator[re.Match[str]]:
    text = file.read_text(encoding="utf-8")
    matches = list(ENTRY.finditer(text))
    assert len(matches) == text.count("\n## "), f"{file.name}: an entry is not in the form title, python, text"
    return iter(matches)


def run_programs(names: Iterable[str], on_pullback: bool) -> dict[str, dict[str, Any]]:
    """Run these programs in a new interpreter, each in a forked copy of it."""
    command = [sys.executable, "-m", "tests.differences.running", "--worker", "pullback" if on_pullback else "torch"]
    finished = subprocess.run(
        [*command, *names], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": _search_path()}
    )
    assert finished.returncode == 0, finished.stderr
    return {row["name"]: row for row in map(json.loads, finished.stdout.splitlines())}


def _search_path() -> str:
    """Give the worker the pullback that runs here, and the tests."""
    import pullback

    return os.pathsep.join([str(Path(pullback.__file__).parents[1]), str(ROOT)])


def _work(on_pullback: bool, names: list[str]) -> None:
    """Print a line of JSON for each program."""
    if on_pullback:
        from pullback import install_as_torch

        install_as_torch()
    import torch
    import torch.func

    del torch
    for program in read_programs():
        if program.name in names:
            sys.stdout.flush()
            if os.fork() == 0:
                print(json.dumps(_run(program)), flush=True)
                os._exit(0)
            os.wait()


def _run(program: Program) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    output, place = io.StringIO(), f"<{program.name}>"
    classes, message, trace = [], "", ""
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(program.code, place, "exec"), {"__name__": "__main__"})
        except BaseException as error:
            classes = [base.__name__ for base in type(error).__mro__]
            message, trace = ADDRESS.sub("0x...", str(error)), traceback.format_exc()
    printed = ADDRESS.sub("0x...", output.getvalue()).splitlines()
    return {"name": program.name, "printed": printed, "classes": classes, "message": message, "trace": trace}


def first_sentence(message: str) -> str:
    """Give the phrase that people search for: the message up to its first full stop or line end."""
    return re.split(r"[.:;(](?:\s|$)|\n", message, maxsplit=1)[0].strip()


def _record() -> None:
    for file in sorted(FOLDER.glob("*.md")):
        rows = run_programs([match["name"] for match in _entries(file)], on_pullback=False)

        def written(match: re.Match[str], rows: dict[str, dict[str, Any]] = rows) -> str:
            row = rows[match["name"]]
            lines = list(row["printed"])
            if row["classes"]:
                lines.append(f"{RAISES}{row['classes'][0]}: {first_sentence(row['message'])}")
            text = "".join(line.rstrip() + "\n" for line in lines)
            return f"## {match['name']} {match['differs'] or ''}{match['title']}\n\n```python\n{match['code']}```\n\n```text\n{text}```\n"

        file.write_text(ENTRY.sub(written, file.read_text(encoding="utf-8")), encoding="utf-8")


def difference(program: Program, row: dict[str, Any]) -> str:
    """Say how what pullback did differs from what was recorded; an empty text if it does not."""
    expected, actual = program.exception, row["classes"]
    problems = []
    if [line.rstrip() for line in row["printed"]] != program.printed:
        problems.append(f"printed {row['printed']}, expected {program.printed}")
    if expected is None and actual:
        problems.append(row["trace"])
    if expected is not None and expected[0] not in actual:
        problems.append(f"raised {actual[:2]} {row['message']!r}, expected {expected}")
    elif expected is not None and expected[1] not in row["message"]:
        problems.append(f"the message {row['message']!r} lacks {expected[1]!r}")
    return "\n".join(problems)


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        _record()
    elif sys.argv[1:2] == ["--worker"]:
        _work(sys.argv[2] == "pullback", sys.argv[3:])
    else:
        wanted = [program for program in read_programs() if program.name in sys.argv[1:] or not sys.argv[1:]]
        rows = run_programs([program.name for program in wanted], on_pullback=True)
        for program in wanted:
            print(f"{program.name} {program.title}\n  {difference(program, rows[program.name]) or 'same'}")
