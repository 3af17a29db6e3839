"""Kernels and formulas as syntax: what a name means in the module where it is written."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pullback.source_text import parse_file

_MARKS = ("native", "compiled_on_arrays")


@dataclass
class Module:
    """The functions, constants and imports of one file."""

    path: Path
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)


class PythonSources:
    """All kernels and formulas; `F.name` is a kernel if there is one, else a formula, as on the array path."""

    def __init__(self, source: Path) -> None:
        self.modules: dict[str, Module] = {}
        self.followed: set[str] = set()
        """The modules whose functions were asked for."""
        for folder in ("kernels", "formulas", "checks"):
            for path in sorted((source / folder).glob("*.py")):
                self.modules[f"pullback.{folder}.{path.stem}"] = read_module(path)
        self._public: dict[str, tuple[str, ast.FunctionDef]] = {}
        for name, module in self.modules.items():
            if name.startswith("pullback.checks."):
                continue
            for function in module.functions.values():
                if not function.name.startswith("_"):
                    self._public.setdefault(function.name, (name, function))

    def public(self, name: str) -> tuple[str, ast.FunctionDef] | None:
        """The kernel or formula that `F.name` means, with its module."""
        found = self._public.get(name)
        if found is not None:
            self.followed.add(found[0])
        return found

    def resolve(self, module: str, name: str) -> tuple[str, ast.FunctionDef] | None:
        """The function that `name` means in `module`, with the module that it is written in."""
        known = self.modules[module]
        if name in known.functions:
            return module, known.functions[name]
        target, original = known.imports.get(name, ("", ""))
        if target in self.modules and original in self.modules[target].functions:
            self.followed.add(target)
            return target, self.modules[target].functions[original]
        return None

    def check_of(self, module: str, kernel: ast.FunctionDef) -> tuple[str, ast.FunctionDef] | None:
        """The function that checks the arguments of a kernel marked `@checked`, with its module."""
        if not any(isinstance(mark, ast.Name) and mark.id == "checked" for mark in kernel.decorator_list):
            return None
        checks = module.replace(".kernels.", ".checks.")
        self.followed.add(checks)
        return checks, self.modules[checks].functions[kernel.name]

    def marked(self) -> list[tuple[str, ast.FunctionDef]]:
        """The kernels marked `@native` and the formulas marked `@compiled_on_arrays`, with their modules."""
        self.followed.update(name for name, _ in self._marked)
        return self._marked

    @cached_property
    def _marked(self) -> list[tuple[str, ast.FunctionDef]]:
        return [
            (name, function)
            for name, module in self.modules.items()
            for function in module.functions.values()
            if any(isinstance(mark, ast.Name) and mark.id in _MARKS for mark in function.decorator_list)
        ]


def read_module(path: Path, text: str | None = None) -> Module:
    """The functions, constants and imports of a file, or of a text in its place."""
    module = Module(path)
    for statement in parse_file(path.read_text() if text is None else text, str(path)).body:
        if isinstance(statement, ast.FunctionDef):
            module.functions[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            module.constants[statement.targets[0].id] = statement.value
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                module.imports[alias.asname or alias.name] = (statement.module, alias.name)
    return module
