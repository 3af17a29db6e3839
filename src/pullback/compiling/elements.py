"""Reads the call of an elementwise kernel into an expression over one element, with what is known of its arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pullback.expressions.c_printer import print_c
from pullback.expressions.functions import FUNCTIONS
from pullback.expressions.python_sources import Module, PythonSources, read_module
from pullback.expressions.reader import Reader
from pullback.expressions.tree import (
    MASK,
    REAL,
    Expr,
    Load,
    Operation,
    Program,
    Select,
    Step,
    called,
    read_steps,
    substitute,
)
from pullback.expressions.ways import NeedsNumber, Unrenderable, Way, as_real
from pullback.kernels.namespace import FILES
from pullback.recording.families import text_of_family

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS = ("kernels", "formulas", "generated")


class _Modules(dict[str, Module]):
    """The modules whose text is followed, each read when it is first asked for: reading all takes half a second."""

    def __missing__(self, name: str) -> Module:
        _, folder, stem = name.split(".")
        text = text_of_family(stem) if folder == "generated" else None
        self[name] = module = read_module(_PACKAGE / folder / f"{stem}.py", text)
        return module

    def __contains__(self, name: object) -> bool:
        parts = str(name).split(".")
        return len(parts) == 3 and parts[0] == "pullback" and parts[1] in _FOLDERS and (
            (_PACKAGE / parts[1] / f"{parts[2]}.py").exists()
        )  # fmt: skip


class _Sources(PythonSources):
    def __init__(self) -> None:
        self.modules = _Modules()
        self.followed = set()
        self._formulas: dict[str, str] = {}
        self._kernels = {name: file for file, names in FILES.items() for name in names.split()}

    def public(self, name: str) -> tuple[str, ast.FunctionDef] | None:
        if name in self._kernels:
            return self.resolve(f"pullback.kernels.{self._kernels[name]}", name)
        return self._formula(name)

    def _formula(self, name: str) -> tuple[str, ast.FunctionDef] | None:
        if name not in self._formulas:
            self._formulas[name] = ""
            for path in sorted((_PACKAGE / "formulas").glob("*.py")):
                if f"\ndef {name}(" in path.read_text(encoding="utf-8"):
                    self._formulas[name] = f"pullback.formulas.{path.stem}"
        module = self._formulas[name]
        return (module, self.modules[module].functions[name]) if module else None

    def resolve(self, module: str, name: str) -> tuple[str, ast.FunctionDef] | None:
        target, original = self.modules[module].imports.get(name, ("", ""))
        if target == "pullback.recording.array_formulas":  # the files of formulas/, with kernels for operations
            return self.public(original)
        if target == "pullback.recording.vocabulary":
            return self.public(original)
        return super().resolve(module, name)


_sources = _Sources()
_read: dict[Any, Reading | None] = {}


@dataclass(frozen=True)
class Reading:
    """What a call computes for one element; where a test of `beyond` holds for one of them, libm's functions serve."""

    program: Program
    beyond: tuple[Expr, ...] = ()

    @cached_property
    def cost(self) -> int:
        """How long one element takes, in additions, roughly."""
        return sum(expression_cost(expression) for expression in self.program.expressions())

    @cached_property
    def number(self) -> int:
        """The same for readings that are equal, and no others."""
        return _numbers.setdefault(self, len(_numbers))

    @property
    def is_mask(self) -> bool:
        return self.program.result.kind == MASK


_numbers: dict[Reading, int] = {}


def expression_cost(expression: Expr) -> int:
    """The time of an expression in additions: a costly function takes twenty."""
    cost, stack = 0, [expression]
    while stack:
        part = stack.pop()
        if isinstance(part, Operation):
            function = FUNCTIONS.get(part.name)
            cost += 20 if function is not None and function.costly else 4 if part.name in ("/", "sqrt") else 1
            stack += part.arguments
        elif isinstance(part, Select):
            cost += 1
            stack += (part.mask, part.first, part.second)
    return cost


def read_call(module: str, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Reading | None:
    """What a kernel computes for one element; None where expressions have no word for it.

    Arrays among the arguments are Loads, Python's own values are themselves.
    """
    try:
        key = (module, name, _keyed(arguments), _keyed(tuple(sorted(options.items()))))
        if key not in _read:
            _read[key] = _follow(module, name, arguments, dict(options))
        return _read[key]
    except TypeError:  # an argument that is not a key: a list, an array
        return None


def _keyed(given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([(type(part).__name__, repr(part) if isinstance(part, float) else part) for part in given])


def _follow(module: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Reading | None:
    if module not in _sources.modules:
        return None
    found = _sources.resolve(module, name)
    if found is None:
        return None
    way = Way([])
    reader = Reader(_sources, way)
    try:
        result = reader.word(name, [*arguments, *options.values()])
        if result is None:
            result = reader.call(*found, list(arguments), options)
        if not (isinstance(result, (Operation, Select, Load)) and result.kind in (REAL, MASK)):
            result = as_real(result)
    except (Unrenderable, NeedsNumber, AttributeError, ValueError, KeyError, OverflowError, ArithmeticError):
        return None
    if way.conditions:  # a test on a number that changes from call to call
        return None
    steps = read_steps(way.steps, result, *way.beyond)
    return Reading(Program(tuple(steps), result), tuple(dict.fromkeys(way.beyond)))


_NOT_IN_FLOAT64 = frozenset(name for name, function in FUNCTIONS.items() if function.in_float32_alone) | {"lgamma"}
_INTEGER_OPERATIONS = frozenset(
    ("+", "-", "*", "neg", "real", "==", "!=", "<", "<=", ">", ">=", "&", "|", "!")
)  # fmt: skip


def is_printable(reading: Reading, real: str) -> bool:
    """Whether C has every function of a reading for elements of the type `real`."""
    if real == "float":
        return True
    if real == "double":
        return not called(*reading.program.expressions()) & _NOT_IN_FLOAT64
    stack, names = list(reading.program.expressions()), set()
    while stack:
        part = stack.pop()
        if isinstance(part, Operation):
            names.add(part.name)
            stack += part.arguments
        elif isinstance(part, Select):
            stack += (part.mask, part.first, part.second)
    return names <= _INTEGER_OPERATIONS


_REAL = re.compile(r"\bREAL\b")


def print_element(expression: Expr, real: str, *, by_libm: bool = False) -> str:
    """The expression in C, its elements of the type `real`."""
    return _REAL.sub(real, print_c(expression, by_libm=by_libm))


def renamed(program: Program, prefix: str, values: Mapping[str, Expr]) -> Program:
    """The program with its steps called by `prefix` and a number, and `values` in the place of its loads."""
    names: dict[str, Expr] = dict(values)
    steps = []
    for number, step in enumerate(program.steps):
        local = f"{prefix}_{number}"
        steps.append(Step(local, substitute(step.value, names)))
        names[step.name] = Load(local, step.value.kind)
    return Program(tuple(steps), substitute(program.result, names))
