"""Checks that every mention of a named note leads to exactly one such note.

A note is written once, as a comment or docstring line that begins with `Note` and the name in square brackets;
any other mention is a reference. Run as `python -m tools.check_notes [folder...]`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MENTION = re.compile(r"\bNote \[([A-Z][^\]\n]*)\]")
DEFINITION = re.compile(r"^\s*(?:#+\s*|\"\"\"|/?\*\s+)?Note \[([A-Z][^\]\n]*)\]\s*[.:]?\s*$")
FOLDERS = ("src", "tools", "docs", "benchmarks")
SUFFIXES = {".py", ".md", ".c", ".h"}


@dataclass
class Notes:
    """Where each note is written and where it is mentioned, as `path:line`."""

    definitions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    references: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def read_notes(files: Iterable[Path]) -> Notes:
    """Collect the notes of `files` and the references to them."""
    notes = Notes()
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            definition = DEFINITION.match(line)
            if definition:
                notes.definitions[definition[1]].append(f"{path}:{number}")
            else:
                for name in MENTION.findall(line):
                    notes.references[name].append(f"{path}:{number}")
    return notes


def objections(notes: Notes) -> Iterator[str]:
    """Yield one line for each reference without a note and each note written more than once."""
    for name, places in sorted(notes.references.items()):
        if name not in notes.definitions:
            for place in places:
                yield f"{place}: no note is called '{name}'; write it at its owner or correct the name"
    for name, places in sorted(notes.definitions.items()):
        for place in places[1:]:
            yield f"{place}: the note '{name}' is already written at {places[0]}; refer to it instead"


def files_below(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files below `folders` that may hold notes."""
    for folder in folders:
        yield from (path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES)


def main(arguments: list[str]) -> int:
    """Print the objections; the exit status says whether there were any."""
    root = Path(__file__).parent.parent
    folders = [Path(argument) for argument in arguments] or [root / name for name in FOLDERS]
    lines = list(objections(read_notes(files_below(folders))))
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
