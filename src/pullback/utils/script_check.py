"""Finds what a program uses of PyTorch that pullback lacks, without running it: `pullback check script.py`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = ["Finding", "check_file", "check_source", "main"]

_MISSING = object()


class Finding(NamedTuple):
    """A name of PyTorch's that is used at a line and that pullback lacks."""

    file: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}"


def check_source(text: str, file: str = "<text>") -> list[Finding]:
    """The names that a program asks of torch, and that are not there.

    >>> [str(found) for found in check_source("import torch\\ntorch.ones(2).sum()\\ntorch.classes.load_library('x')")]
    ['<text>:3: torch.classes']
    """
    found: dict[tuple[str, int], Finding] = {}
    for name, line in _asked(ast.parse(text, file)):
        lacking = _lacking(name)
        if lacking is not None:
            found.setdefault((lacking, line), Finding(file, line, lacking))
    return sorted(found.values())


def check_file(path: Path) -> list[Finding]:
    """The same for a file, or for all Python files of a folder."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [finding for file in files for finding in check_source(file.read_text(encoding="utf-8"), str(file))]


def main(paths: list[str]) -> int:
    """Print what programs lack; the exit status says whether something does."""
    found: list[Finding] = []
    for path in paths:
        try:
            found += check_file(Path(path))
        except (OSError, SyntaxError, ValueError) as error:
            print(f"pullback: cannot read {path}: {error}", file=sys.stderr)
            return 2
    for finding in found:
        print(f"{finding} is not in pullback")
    names = len({finding.name for finding in found})
    print(f"{names} names are missing." if found else "Everything that was found by name is there.")
    return bool(found)


def _asked(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every dotted name below torch that the program says, and its line; what an `except` provides for is left out."""
    known: dict[str, str] = {}
    guarded = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.Try) for s in node.body for part in ast.walk(s)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    known[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                    if id(node) not in guarded:
                        yield alias.name, node.lineno
        elif (
            isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torch" and not node.level
        ):
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if id(node) not in guarded and alias.name != "*":
                    yield f"{node.module}.{alias.name}", node.lineno
    inner = set()
    for node in ast.walk(tree):  # from the outside in: `torch.nn.Linear` comes before `torch.nn`
        if isinstance(node, ast.Attribute) and id(node) not in inner and id(node) not in guarded:
            names = [node.attr]
            part: ast.expr = node.value
            while isinstance(part, ast.Attribute):
                inner.add(id(part))
                names.append(part.attr)
                part = part.value
            if isinstance(part, ast.Name) and part.id in known:
                yield ".".join([known[part.id], *reversed(names)]), node.lineno


@cache
def _lacking(name: str) -> str | None:
    """The shortest part of a dotted name that pullback lacks; None if all of it is there."""
    value: object = importlib.import_module("pullback")
    said = "torch"
    for part in name.split(".")[1:]:
        said = f"{said}.{part}"
        if not isinstance(value, ModuleType):
            if not isinstance(value, type) or hasattr(value, part):
                return None  # what an object has is known when the program runs
            return said
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = getattr(value, part, _MISSING)
            if found is _MISSING and importlib.util.find_spec(f"{value.__name__}.{part}") is not None:
                found = importlib.import_module(f"{value.__name__}.{part}")
        if found is _MISSING:
            return said
        value = found
    return None
