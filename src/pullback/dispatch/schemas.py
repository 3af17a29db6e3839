"""Schemas of operators: what arguments they take, in PyTorch's notation, such as `mm(Tensor self, Tensor mat2) -> Tensor`.

The schemas of ATen's operators are data: aten_schemas.txt, which tools/record_aten_schemas.py writes.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from pullback.backend import layout

_MISSING = object()
_MEMORY = re.compile(r"\([a-z][^)]*\)")
_LINE = re.compile(r"(~?)(\w+)(?:\.(\w+))?\((.*)\) -> (.*)")


class Argument(NamedTuple):
    """One argument of a schema."""

    name: str
    type: str
    default_value: Any
    kwarg_only: bool
    is_write: bool

    def has_default_value(self) -> bool:
        """Whether the argument may be left out."""
        return self.default_value is not _MISSING


class FunctionSchema(NamedTuple):
    """The name, arguments and results of an operator, printed as PyTorch prints them.

    >>> schema = parse_schema("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", "aten")
    >>> schema
    aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
    >>> [argument.name for argument in schema.arguments]
    ['self', 'end', 'weight']
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    text: str
    composite: bool

    @property
    def is_mutable(self) -> bool:
        """Whether some argument is written to."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def returns(self) -> list[str]:
        """The types of the results, without their names and without what says which memory they share."""
        kinds = _MEMORY.sub("", self.text.rpartition(") -> ")[2])
        return [kind.split()[0] for kind in kinds.strip("()").split(",") if kind.strip()]

    def __repr__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text


def parse_schema(line: str, namespace: str) -> FunctionSchema:
    """Read one schema."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        name, _, overload = line.partition("(")[0].strip().partition(".")
        return FunctionSchema(f"{namespace}::{name}", overload, (), f"{namespace}::{line.strip()}", False)
    mark, name, overload, arguments, _ = found.groups()
    text = f"{namespace}::{line.strip().lstrip('~')}"
    return FunctionSchema(f"{namespace}::{name}", overload or "", _parse_arguments(arguments), text, bool(mark))


def _parse_arguments(text: str) -> tuple[Argument, ...]:
    made: list[Argument] = []
    by_keyword = False
    for part in _split(text):
        if part == "*":
            by_keyword = True
            continue
        declaration, equals, default = part.partition("=")
        kind, _, name = declaration.strip().rpartition(" ")
        plain = re.sub(r"\([^)]*\)", "", kind)
        value = _value(default, plain) if equals else _MISSING
        made.append(Argument(name, plain, value, by_keyword, "!" in kind))
    return tuple(made)


def _split(text: str) -> list[str]:
    """The arguments without the commas between them."""
    parts: list[str] = []
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        depth += (character in "([") - (character in ")]")
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


def _value(text: str, kind: str) -> Any:
    """A default: a literal, or a memory format."""
    text = text.strip()
    if text.endswith("_format"):
        return getattr(layout, text)
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    return float(value) if kind == "float" and type(value) is int else value


@cache
def aten_schemas() -> dict[str, dict[str, FunctionSchema]]:
    """The schemas of ATen's operators, by name and by name of the overload."""
    found: dict[str, dict[str, FunctionSchema]] = {}
    for line in (files("pullback.dispatch") / "aten_schemas.txt").read_text(encoding="utf-8").splitlines():
        name, _, overload = line.lstrip("~").partition("(")[0].partition(".")
        found.setdefault(name, {})[overload or "default"] = parse_schema(line, "aten")
    return found
