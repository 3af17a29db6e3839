"""Operations of your own: a kernel and its rule, declared outside of the package, with all that built-in ones have.

The two texts are those of an operation of the package (docs/adding_an_op.md), and they are read and rendered as these
are, when they are declared: node, recording function, `out=`, in-place form, gradients on arrays and on Tensors, tangent.
What else is known of the operation follows from its record and its facts: vmap from its structure, autocast from
`autocast=`. A compiled program (`compile`) sees through its kernel, and makes a loop of it where there is a compiler.

>>> import numpy as np
>>> import pullback
>>> @operation(elementwise, in_place=True, autocast="float32")
... def softcube(input: Array) -> Array:
...     return input**3 / (1 + input * input)
>>> @softcube.pullback
... def softcube(grad: Tensor, input: Tensor) -> Pullback:
...     square = input * input
...     return wrt(input=grad * square * (3 + square) / ((1 + square) * (1 + square)))
>>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
>>> y = softcube(x)
>>> y
tensor([0.5000, 1.6000], grad_fn=<SoftcubeBackward0>)
>>> pullback.autograd.grad(y.sum(), x)
(tensor([1.0000, 1.1200]),)
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pullback import functions, generated, rules
from pullback.backend.array_module import ndarray
from pullback.dispatch.overloads import declare_operator
from pullback.facts import FACTS, add_facts
from pullback.generated.registry import OPERATIONS, Operation
from pullback.kernels.namespace import FILES
from pullback.kernels.overwriting import overwriting
from pullback.native import silent
from pullback.recording import array_formulas, rendered, vocabulary
from pullback.rules import (
    Array,
    Arrays,
    Dim,
    Dims,
    DType,
    F,
    Pullback,
    Scalar,
    Shape,
    Tensor,
    elementwise,
    general,
    linear,
    multilinear,
    non_differentiable,
    not_implemented,
    self_adjoint,
    wrt,
)
from pullback.rules.emit_functions import can_overwrite, emit_function, emit_in_place, record_of
from pullback.rules.emit_nodes import emit_node
from pullback.rules.model import Kernel
from pullback.rules.model import Operation as Declared
from pullback.rules.read_kernels import read_kernel
from pullback.rules.read_rules import KINDS, OPTIONS, read_rules_of
from pullback.rules.render import Library, check_names
from pullback.source_text import run_text

__all__ = [
    "Array", "Arrays", "DType", "Declaration", "Dim", "Dims", "F", "Pullback", "Scalar", "Shape", "Tensor", "elementwise",
    "general", "linear", "multilinear", "non_differentiable", "not_implemented", "operation", "self_adjoint", "wrt",
]  # fmt: skip


def operation(kind: Any = general, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operation by its kernel, a function on arrays whose signature is the operation's.

    `kind` and `options` are those of a rule, facts among them. The result waits for the rule, which `.pullback` takes and
    for which it gives the operation; its in-place form is the operation's attribute `in_place`. An operation that is
    `non_differentiable` needs no rule.

    >>> @operation(non_differentiable, structure="elementwise")
    ... def is_even(input: Array) -> Array:
    ...     return input % 2 == 0
    >>> import pullback
    >>> is_even(pullback.tensor([1, 2]))
    tensor([False,  True])
    """
    names = [name for name in KINDS if getattr(rules, name) is kind]
    if not names:
        raise TypeError(f"operation(): {kind!r} is not a kind: one of {', '.join(KINDS)} of pullback.extension")
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise TypeError(f"operation(): unknown option {unknown[0]}: one of {', '.join(sorted(OPTIONS))}")

    def declare(kernel: Callable[..., Any]) -> Any:
        declared = Declaration(kernel, names[0], options)
        return declared if kind is not non_differentiable else declared.pullback(None)

    return declare


class Declaration:
    """A kernel that waits for its rule."""

    def __init__(self, kernel: Callable[..., Any], kind: str, options: dict[str, Any]) -> None:
        name = kernel.__name__
        if name in OPERATIONS or functions.module_of(name) is not None:
            raise ValueError(f"operation(): {name} is an operation already; choose another name.")
        self._kernel, self._kind, self._options = kernel, kind, options
        self._tangent: ast.FunctionDef | None = None

    def tangent(self, rule: Callable[..., Any]) -> Declaration:
        """Take an explicit forward-mode rule, before the pullback; without one the kind or the pullback says it."""
        self._tangent = _read(rule, f"{self._kernel.__name__}_tangent", "tangent", {})
        return self

    def pullback(self, rule: Callable[..., Any] | None) -> Callable[..., Any]:
        """Take the rule, which is read and never run, and give the operation."""
        name = self._kernel.__name__
        path = Path(inspect.getsourcefile(self._kernel) or name)
        options = {
            option: value for option, value in self._options.items() if option not in FACTS or option == "structure"
        }
        statements = [
            _read(rule or self._kernel, name, self._kind, options),
            *([self._tangent] if self._tangent else []),
        ]
        kernel = read_kernel(_syntax(self._kernel), path)
        declared = read_rules_of(statements, path, {name: kernel})[name]
        declared.rule.module = family = f"declared_{name}"
        module = _render(declared, kernel, self._kernel)
        rendered.families[family] = (path, ast.Module(list(statements), []))
        facts, rare = record_of(declared)
        OPERATIONS[name] = Operation(*facts, **rare)  # type: ignore[arg-type]  # as generated/registry.py has them
        for known in (name, f"{name}_", declared.rule.class_name):
            if hasattr(module, known):
                generated.MODULES[known] = module.__name__
        facts_of_it = {fact: value for fact, value in self._options.items() if fact in FACTS}
        add_facts(name, **{**facts_of_it, "structure": declared.structure})
        made: Callable[..., Any] = getattr(module, name)
        made.in_place = getattr(module, f"{name}_", None)  # type: ignore[attr-defined]
        declare_operator(name, _schema_of(OPERATIONS[name]), made)
        if made.in_place is not None:  # type: ignore[attr-defined]
            declare_operator(f"{name}_", _schema_of(OPERATIONS[name], in_place=True), made.in_place)  # type: ignore[attr-defined]
        return made


_TYPES = {
    "tensor": "Tensor", "tensor or number": "Tensor", "optional tensor": "Tensor?", "tensor list": "Tensor[]",
    "dim": "int", "dims": "int[]?",
}  # fmt: skip
"""What the roles of parameters are in a schema; any other argument is shown as it is given."""


def _schema_of(operation: Operation, in_place: bool = False) -> str:
    """The schema by which dispatch modes know the operation."""
    names = ["self" if name == "input" else name for name, _, _ in operation.parameters]
    kinds = [_TYPES.get(role, "Any") for _, role, _ in operation.parameters]
    if in_place:
        kinds[0] = "Tensor(a!)"
    arguments = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    result = "Tensor(a!)" if in_place else "Tensor"
    results = result if operation.outputs == 1 else f"({', '.join([result] * operation.outputs)})"
    return f"{operation.name}{'_' * in_place}({arguments}) -> {results}"


def _render(declared: Declared, kernel: Kernel, function: Callable[..., Any]) -> ModuleType:
    """The module that the generator would have written for the operation."""
    name = declared.name
    function = silent(function if declared.rule.view else _with_own_results(function))
    known = {kernel: file for file, names in FILES.items() for kernel in names.split()}
    library = Library({**known, name: ""}, dict.fromkeys([*OPERATIONS, name], ""), set(generated.FORMULAS))
    check_names(declared, library)
    module = ModuleType(f"pullback.generated.{declared.rule.module}", kernel.doc or None)
    scope = vars(module)
    scope.update({word: getattr(vocabulary, word) for word in vocabulary.__all__})
    scope.update(Any=Any, F=generated, Sequence=Sequence)
    text = ["from __future__ import annotations", ""]
    if declared.differentiable:
        node, used = emit_node(declared, library)
        text += [*node, ""]
        for place, called in used:
            scope[f"{called}_kernel"] = function if called == name else getattr(import_module(place), called)
    text += [*emit_function(declared), ""]
    if declared.rule.in_place:
        text += emit_in_place(declared)
    scope[f"{name}_kernel"] = function
    setattr(array_formulas, name, function)  # what `F.name` means in rules on arrays
    if declared.rule.in_place and can_overwrite(declared):
        scope[f"{name}_overwriting"] = overwriting(function)
    sys.modules[module.__name__] = module
    run_text("\n".join([*text, ""]), f"the operation {name}", scope)
    return module


def _with_own_results(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel with results that are memory of their own, as those of operations that are not views must be."""

    @wraps(kernel)
    def call(*args: Any, **options: Any) -> Any:
        def own(result: Any) -> Any:
            if type(result) is not ndarray or (result.base is None and not any(result is a for a in args)):
                return result
            return result.copy()

        results = kernel(*args, **options)
        return tuple([own(r) for r in results]) if isinstance(results, (tuple, list)) else own(results)

    return call


def _syntax(function: Callable[..., Any]) -> ast.FunctionDef:
    """The text of a function as syntax."""
    try:
        text = inspect.getsource(function)
    except OSError as error:
        message = f"{function.__name__} is read as text, and its text cannot be found: declare it in a file ({error})"
        raise TypeError(message) from None
    (statement,) = ast.parse(textwrap.dedent(text)).body
    assert isinstance(statement, ast.FunctionDef)
    return statement


def _read(rule: Callable[..., Any], name: str, kind: str, options: dict[str, Any]) -> ast.FunctionDef:
    """A rule as it would stand in derivatives/: with its kind for the only decorator."""
    statement = _syntax(rule)
    shift = rule.__code__.co_firstlineno - 1
    values = [ast.keyword(option, ast.parse(repr(value), mode="eval").body) for option, value in options.items()]
    statement.decorator_list = [ast.Call(ast.Name(kind, ast.Load()), [], values)]
    statement.name = name
    ast.increment_lineno(ast.fix_missing_locations(statement), shift)
    return statement
