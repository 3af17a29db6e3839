"""Writes docs/compatibility.md: every recorded row of PyTorch's behaviour, and whether pullback does the same.

Run: python -m tools.compatibility [--check]. The rows are the programs of tests/semantics/rows, compared with what PyTorch
reported when they were recorded; the table is made of these comparisons and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "compatibility.md"
_INTRODUCTION = """# Compatibility with PyTorch's autograd, row by row

Each row is a small program in `tests/semantics/rows/`. PyTorch 2.13 ran it once and its reports were recorded; pullback
runs it in every test run. *same* means that every value, name, warning and error phrase it reports is PyTorch's. This page
is written by `python -m tools.compatibility` from these comparisons.
"""


def table() -> str:
    """The page."""
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    import pullback
    from tests.semantics.record import EXPECTED
    from tests.semantics.reporting import all_rows, run_row

    expected = json.loads(EXPECTED.read_text())
    sections: dict[str, list[str]] = {}
    same = 0
    rows = all_rows()
    for name, row in sorted(rows.items()):
        try:
            state = "same" if run_row(row, pullback) == expected.get(name) else "**differs**"
        except Exception as error:
            state = f"**fails** ({type(error).__name__})"
        same += state == "same"
        number, _, title = name.removeprefix("row_").partition("_")
        heading = (sys.modules[row.__module__].__doc__ or "").strip().rstrip(".")
        sections.setdefault(heading, []).append(f"| {int(number)} | {title.replace('_', ' ')} | {state} |")
    lines = [_INTRODUCTION, f"{same} of {len(rows)} rows are the same.\n"]
    for heading, entries in sorted(sections.items(), key=lambda item: int(item[0].split(":")[0].split()[-1])):
        lines += [f"## {heading}\n", "| row | behaviour | state |", "|--:|---|---|", *entries, ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is up to date."""
    text = table()
    if "--check" in arguments:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/compatibility.md is not up to date: run python -m tools.compatibility", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
