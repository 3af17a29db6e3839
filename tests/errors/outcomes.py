"""Reads the wrong calls, makes them, and compares what they raise.

A line of a file in calls/ is an expression in which `torch` is the library; statements before it are separated by `;;`.
Lines that begin with `!` are run before every call of their file.
"""

from __future__ import annotations

import builtins
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "calls"
EXPECTED = Path(__file__).parent / "expected.txt"


def read_calls() -> Iterator[tuple[str, str, str]]:
    """The file of every call, what runs before it, and the call."""
    for path in sorted(FOLDER.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        before = "\n".join(line[1:] for line in lines if line.startswith("!"))
        for line in lines:
            if line.strip() and line[0] not in "!#":
                yield path.stem, before, line


def outcome(library: Any, before: str, call: str) -> Exception | None:
    """The exception that a call raises, or None."""
    scope: dict[str, Any] = {"torch": library, "np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(before, scope)
        try:
            exec(call.replace(";; ", "\n"), scope)
        except Exception as error:
            return error
    return None


def type_name(error: BaseException | None) -> str:
    """The name of the first of an exception's classes that Python has."""
    if error is None:
        return "nothing"
    return next(c for c in type(error).__mro__ if c.__module__ == builtins.__name__).__name__


def is_of_type(error: BaseException | None, name: str) -> bool:
    """Whether an outcome has the type that was recorded."""
    return error is None if name == "nothing" else isinstance(error, getattr(builtins, name))


def words_of(error: BaseException | None, *, last: bool = False) -> list[str]:
    """The words of the first two lines of a message, or of its last, without numbers, places and names of the library."""
    lines = str(error).splitlines()
    text = " ".join(lines[-1:] if last else lines[:2]).replace("pullback", "torch")
    return re.findall(r"[A-Za-z_]+", re.sub(r"0x[0-9a-f]+| \(position \d+\)", "", text))


def common_words(theirs: list[str], ours: list[str]) -> list[str]:
    """The longest run of words that two messages share."""
    best: list[str] = []
    for i in range(len(theirs)):
        for j in range(len(ours)):
            length = 0
            while i + length < len(theirs) and j + length < len(ours) and theirs[i + length] == ours[j + length]:
                length += 1
            if length > len(best):
                best = theirs[i : i + length]
    return best
