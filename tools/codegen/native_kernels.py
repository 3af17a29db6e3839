"""Which kernels and which lines of rules are compiled: their parameters, as C sees them, and their variants."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback.expressions.python_sources import PythonSources
from pullback.expressions.reader import Reader
from pullback.expressions.tree import MASK, NUMBER, REAL, TEXT, Load
from pullback.expressions.ways import Optional, Unrenderable, Variant, Way, find_variants, needs_number
from pullback.rules.emit_apply import line_function_name, line_parameters
from pullback.rules.model import OPTIONAL_TENSOR, TENSOR_OR_NUMBER, Line, Operation, Refusal
from pullback.rules.saved_values import saved_values
from tools.codegen.emit_rows import RowKernel, is_of_rows, render_rows
from tools.codegen.emit_steps import is_step

_KINDS = {
    "Array": "ARRAY",
    "Array | None": "OPTIONAL_ARRAY",
    "Array | Scalar": "ARRAY_OR_NUMBER",
    "Scalar": "NUMBER",
    "float": "NUMBER",
    "int": "NUMBER",
    "Scalar | None": "OPTIONAL_NUMBER",
    "float | None": "OPTIONAL_NUMBER",
    "str": "TEXT",
}
_MASKS = ("condition", "mask")
MOST_PARAMETERS = 8


@dataclass(frozen=True)
class CParameter:
    """A parameter of a compiled kernel; `kind` is a ParameterKind of elementwise_driver.h."""

    name: str
    kind: str
    default: str | None = None

    @property
    def is_operand(self) -> bool:
        return self.kind in ("ARRAY", "OPTIONAL_ARRAY", "ARRAY_OR_NUMBER", "MASK")

    def symbol(self) -> Load | Optional:
        """What the parameter is to the expressions that read it."""
        if self.kind == "TEXT":
            return Load(self.name, TEXT)
        if self.kind.startswith("OPTIONAL"):
            return Optional(Load(self.name, REAL if self.is_operand else NUMBER))
        if self.kind == "MASK":
            return Load(self.name, MASK)
        return Load(self.name, NUMBER if self.kind == "NUMBER" else REAL)


@dataclass
class NativeKernel:
    """A kernel to write in C."""

    name: str
    parameters: tuple[CParameter, ...]
    variants: list[Variant]
    origin: str
    is_line: bool = False


def find_native_kernels(
    sources: PythonSources, operations: list[Operation], native_folder: Path, refusals: list[Refusal]
) -> list[NativeKernel]:
    """The marked kernels that no file of C holds, and the lines of elementwise rules that C can express."""
    written = written_by_hand(native_folder)
    kernels: list[NativeKernel] = []
    for module, function in sources.marked():
        if function.name in written or is_step(function) or is_of_rows(function):
            continue
        try:
            kernels.append(render_kernel(sources, module, function))
        except Unrenderable as problem:
            refusals.append(_refusal(sources, module, function, problem))
    for operation in operations:
        for line in operation.rule.lines:
            rendered = render_line(sources, operation, line)
            if rendered is not None:
                kernels.append(rendered)
    return kernels


def find_row_kernels(sources: PythonSources, native_folder: Path, refusals: list[Refusal]) -> list[RowKernel]:
    """The marked kernels along a dimension, and losses of a whole array, that no file of C holds."""
    written = written_by_hand(native_folder)
    kernels = []
    loops: dict[str, str] = {}
    for module, function in sources.marked():
        if function.name not in written and is_of_rows(function):
            try:
                kernels.append(render_rows(sources, module, function, loops))
            except Unrenderable as problem:
                refusals.append(_refusal(sources, module, function, problem))
    return kernels


def _refusal(sources: PythonSources, module: str, function: ast.FunctionDef, problem: Unrenderable) -> Refusal:
    message = (
        f"{function.name} cannot be rendered to C ({problem}): write it as one expression of NumPy functions "
        "that expressions/functions.py knows, take @native away, or write the kernel in src/pullback/native"
    )
    return Refusal(sources.modules[module].path, function.lineno, message)


def written_by_hand(folder: Path) -> set[str]:
    """The names in the tables of kernels that are not generated."""
    found: set[str] = set()
    for path in folder.glob("*.c"):
        found |= set(re.findall(r'^\s*\{"(\w+)",', path.read_text(), re.MULTILINE))
    return found


def render_kernel(sources: PythonSources, module: str, function: ast.FunctionDef) -> NativeKernel:
    """One marked kernel."""
    parameters = tuple(_parameters_of(function))

    def evaluate(parameters: tuple[CParameter, ...], way: Way) -> Any:
        values = {p.name: p.symbol() for p in parameters}
        reader = Reader(sources, way)
        check = sources.check_of(module, function)
        if check is not None:
            reader.call_check(*check, values)
        known = reader.word(function.name, list(values.values()))
        return known if known is not None else reader.call(module, function, [], values)

    return _render(function.name, parameters, evaluate, f"{module.removeprefix('pullback.')}.{function.name}")


def _parameters_of(function: ast.FunctionDef) -> list[CParameter]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    made = []
    for argument, default in pairs:
        annotation = ast.unparse(argument.annotation) if argument.annotation else "Any"
        kind = "MASK" if argument.arg in _MASKS and annotation == "Array" else _KINDS.get(annotation)
        if kind is None:
            raise Unrenderable(f"parameter {argument.arg}: {annotation}")
        made.append(CParameter(argument.arg, kind, ast.unparse(default) if default else None))
    return made


def render_line(sources: PythonSources, operation: Operation, line: Line) -> NativeKernel | None:
    """One line of a rule; None where C cannot express it, or where it hands on the gradient as it is."""
    names = line_parameters(operation, line)
    if names is None or _hands_on(line.expression) or _is_marked(sources, line.expression):
        return None
    parameters = []
    for name in names:
        declared = operation.kernel.parameter(name)
        if declared is None:
            parameters.append(CParameter(name, "ARRAY"))
            continue
        annotation = {TENSOR_OR_NUMBER: "Array | Scalar", OPTIONAL_TENSOR: "Array | None"}.get(
            declared.role, declared.annotation
        )
        kind = "MASK" if name in _MASKS else _KINDS.get(annotation)
        if kind is None:
            return None
        parameters.append(CParameter(name, kind))
    rule = operation.rule

    def evaluate(parameters: tuple[CParameter, ...], way: Way) -> Any:
        scope: dict[str, Any] = {p.name: p.symbol() for p in parameters}
        reader = Reader(sources, way)
        for name, expression in rule.assignments:
            if name in saved_values(operation).of_line[line.parameter].assignments:
                scope[name] = way.keep(name, reader.expression(expression, "", scope))
        return reader.expression(line.expression, "", scope)

    origin = f"derivatives.{rule.module}.{rule.name}: {line.parameter}={ast.unparse(line.expression)}"
    try:
        rendered = _render(line_function_name(operation, line), tuple(parameters), evaluate, origin)
    except Unrenderable:
        return None
    rendered.is_line = True
    return rendered


def _is_marked(sources: PythonSources, expression: ast.expr) -> bool:
    """Whether a line is one call of a kernel that is compiled itself."""
    if not (isinstance(expression, ast.Call) and all(isinstance(a, ast.Name) for a in expression.args)):
        return False
    marked = {function.name for _, function in sources.marked()}
    return isinstance(expression.func, ast.Attribute) and expression.func.attr in marked


def _hands_on(expression: ast.expr) -> bool:
    """Whether the gradient itself may be the value: nothing is computed then."""
    if isinstance(expression, ast.IfExp):
        return _hands_on(expression.body) or _hands_on(expression.orelse)
    return isinstance(expression, ast.Name)


def _render(
    name: str, parameters: tuple[CParameter, ...], evaluate: Callable[[tuple[CParameter, ...], Way], Any], origin: str
) -> NativeKernel:
    if len(parameters) > MOST_PARAMETERS:
        raise Unrenderable("too many parameters")
    names = {p.name for p in parameters}
    variants = needs_number(lambda: find_variants(names, lambda way: evaluate(parameters, way)))
    if variants is None:
        parameters = tuple(
            CParameter(p.name, "NUMBER" if p.kind == "ARRAY_OR_NUMBER" else p.kind, p.default) for p in parameters
        )
        variants = needs_number(lambda: find_variants(names, lambda way: evaluate(parameters, way)))
    if variants is None:
        raise Unrenderable("a test on the elements of an array")
    if not any(p.is_operand for p in parameters):
        raise Unrenderable("no array among the parameters")
    return NativeKernel(name, parameters, variants, origin)
