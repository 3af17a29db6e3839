"""Reads kernels' signatures with `ast`: names, annotations and defaults are the operations' schemas."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from pullback.rules.model import (
    DIM,
    DIMS,
    OPTIONAL_TENSOR,
    PLAIN,
    TENSOR,
    TENSOR_LIST,
    TENSOR_OR_NUMBER,
    Kernel,
    Parameter,
    Refusal,
)  # fmt: skip
from pullback.source_text import parse_file

_ROLES = {
    "Array": TENSOR,
    "Array | None": OPTIONAL_TENSOR,
    "Array | Scalar": TENSOR_OR_NUMBER,
    "Arrays": TENSOR_LIST,
    "Sequence[Array]": TENSOR_LIST,
    "Dim": DIM,
    "Dim | None": DIM,
    "Dims": DIMS,
}


def read_kernels(folder: Path, refusals: list[Refusal]) -> dict[str, Kernel]:
    """Every public function of the kernel files, by name; a second one of the same name is added to `refusals`."""
    kernels: dict[str, Kernel] = {}
    for path in sorted(folder.glob("*.py")):
        if path.name == "__init__.py":
            continue
        tree = parse_file(path.read_text(), str(path))
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("_"):
                kernel = read_kernel(statement, path)
                other = kernels.get(kernel.name)
                if other is not None:
                    message = f"kernel {kernel.name} is already defined in {other.path}"
                    refusals.append(Refusal(path, statement.lineno, message))
                    continue
                kernels[kernel.name] = kernel
    return kernels


@cache
def _checks_of(path: Path) -> dict[str, bool]:
    """The kernels of a file for which checks/ has a function, with whether that is asked after a failure alone."""
    file = path.parent.parent / "checks" / path.name
    found = parse_file(file.read_text(), str(file)).body if file.exists() else []
    functions = [statement for statement in found if isinstance(statement, ast.FunctionDef)]
    return {function.name: bool(function.decorator_list) for function in functions}


def read_kernel(function: ast.FunctionDef, path: Path) -> Kernel:
    """A kernel, from its text."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parameters = [_parameter(a, d, False) for a, d in zip(positional, defaults, strict=True)]
    parameters += [_parameter(a, d, True) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    doc = (ast.get_docstring(function) or "").strip()
    after_failure = _checks_of(path).get(function.name)
    has_check = after_failure is False and "checked" not in map(ast.unparse, function.decorator_list)
    return Kernel(
        function.name, path.stem, tuple(parameters), doc, path, function.lineno, has_check, after_failure is True
    )  # fmt: skip


def _parameter(argument: ast.arg, default: ast.expr | None, keyword_only: bool) -> Parameter:
    annotation = ast.unparse(argument.annotation) if argument.annotation else "Any"
    role = _ROLES.get(annotation, PLAIN)
    return Parameter(argument.arg, role, annotation, ast.unparse(default) if default else None, keyword_only)
