"""Records an operation whose values somebody else computes: the generated function runs with another kernel.

The generated function checks arguments, makes the node, saves what its rule reads and ties views to their base. Here it
runs as a copy whose names for the kernel and for new tensors mean what the dispatch mode returned. So a node that is
recorded under a mode is the very node that is recorded without one.
"""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from pullback.backend.array_module import copy_array
from pullback.generated.registry import OPERATIONS, Operation
from pullback.graph.in_place import write_in_place
from pullback.graph.node import Node
from pullback.graph.saved_tensor import SavedOutput
from pullback.modes.switches import switches
from pullback.recording.slow_road import check_arguments
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.tensor_base import TensorBase, copy_state

_MANY = frozenset(["split", "split_with_sizes", "unbind"])
"""Operations whose kernels give as many arrays as there are parts."""


def record(
    function: Callable[..., Any], operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any], computed: Any
) -> Any:
    """Record an operation that gave `computed`, which becomes the result."""
    results = list(computed) if isinstance(computed, (tuple, list)) else [computed]
    given = (*args, *kwargs.values())
    results = [_placeable(r, given) for r in results[: operation.outputs if operation.name not in _MANY else None]]
    options = {k: v for k, v in kwargs.items() if k != "out"}
    made = _giving(results, function, operation)(*args, **options)
    _note_saved_outputs(results)
    if operation.backward and results[0]._edge is not None:
        values = {**dict(zip([p[0] for p in operation.parameters], args, strict=False)), **options}
        dims = {p[0]: values.get(p[0]) for p in operation.parameters if p[1] == "dim"}
        if told := {name: dim for name, dim in dims.items() if isinstance(dim, int) and dim < 0}:
            results[0]._edge[0].require_extra().told_dims = told
    return made


def record_in_place(
    function: Callable[..., Any],
    operation: Operation,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    compute: Callable[[], Any],
) -> Any:
    """Record an operation that writes to its first argument, which `compute` does."""
    input = args[0]
    version = input._counter.value if input._counter is not None else 0

    def run(alias: Tensor, *rest: Any, **options: Any) -> Any:
        if alias._requires_grad:
            alias._array = copy_array(alias._array)
        compute()
        if input._counter is not None and not input.is_inference():
            input._counter.value = version  # what ran below counted too
        return _giving([new_tensor(input._array)], function, operation)(alias, *rest, **options)

    run.__name__ = function.__name__
    result = write_in_place(run, input, *args[1:], **kwargs)
    _note_saved_outputs([input])
    return result


def _placeable(result: Any, given: tuple[Any, ...]) -> Any:
    """A result that can get a place in the graph: another object where a mode returned one that has its own."""
    if not isinstance(result, Tensor):
        return result
    if not result._requires_grad and not any(result is g for g in given):
        return result
    made: Any = TensorBase.__new__(type(result))
    copy_state(result, made)
    made.__dict__.update(result.__dict__)
    for name in [n for base in type(result).__mro__ for n in base.__dict__.get("__slots__", ())]:
        if hasattr(result, name):
            setattr(made, name, getattr(result, name))
    made._requires_grad, made._edge, made._extra, made._accumulator = False, None, None, None
    return made


def _giving(results: list[Any], function: Callable[..., Any], operation: Operation) -> Callable[..., Any]:
    """A copy of a generated function that computes nothing: its results are given."""
    names = dict(vars(sys.modules[function.__module__]))
    if not isinstance(function, FunctionType):
        names = {**_imported_names(function.__module__), **names}
    remaining: Iterator[Any] = iter(results)
    arrays: Any = [r._array for r in results]
    computed = arrays if operation.outputs > 1 or operation.name in _MANY else arrays[0]
    names[f"{operation.name}_kernel"] = lambda *args, **kwargs: computed
    names["new"] = names["new_tensor"] = lambda *args: next(remaining)
    names["divert"] = _checked
    code = function.__code__ if isinstance(function, FunctionType) else _code_of(function.__module__, operation.name)
    made = FunctionType(code, names, operation.name, getattr(function, "__defaults__", None))
    made.__kwdefaults__ = getattr(function, "__kwdefaults__", None)
    return made


def _checked(name: str, given: Any, out: Any = None) -> Any:
    """What a generated function asks before it computes, when nobody is to take the call over any more."""
    if type(given) is not tuple:
        given = tuple([given[parameter[0]] for parameter in OPERATIONS[name].parameters])
    return check_arguments(name, given, out)


@cache
def _imported_names(module: str) -> dict[str, Any]:
    """What a generated file imports: a compiled module keeps some of it to itself."""
    names: dict[str, Any] = {}
    for statement in ast.parse(_text_of(module)).body:
        if isinstance(statement, ast.ImportFrom) and statement.module != "__future__":
            source = import_module(str(statement.module))
            names |= {part.asname or part.name: getattr(source, part.name) for part in statement.names}
    return names


def _path_of(module: str) -> Path:
    return Path(str(sys.modules["pullback.generated"].__file__)).parent / f"{module.rpartition('.')[2]}.py"


def _text_of(module: str) -> str:
    return _path_of(module).read_text(encoding="utf-8")


@cache
def _code_of(module: str, name: str) -> CodeType:
    """The code of a generated function from its text: a compiled one cannot be given other names."""
    path = _path_of(module)
    flag = __future__.annotations.compiler_flag
    for statement in ast.parse(_text_of(module)).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            compiled = compile(ast.Module([statement], []), str(path), "exec", flags=flag)
            return next(c for c in compiled.co_consts if isinstance(c, CodeType) and c.co_name == name)
    raise AssertionError(f"{path} has no function {name}")


class SeenOutput(SavedOutput):
    """A saved result of a node that dispatch modes saw detached, and see detached again when it is read."""

    __slots__ = ("detached",)

    def __init__(self, tensor: Tensor, output_nr: int, detached: Tensor) -> None:
        super().__init__(tensor, output_nr)
        self.detached = detached

    def as_tensor(self, node: Node) -> Tensor:
        if not self.differentiable:
            return self.detached
        plain = super().as_tensor(node)
        tensor = self.detached.detach()
        for name in ("_requires_grad", "_edge", "_counter", "_extra"):
            setattr(tensor, name, getattr(plain, name))
        return tensor


def _note_saved_outputs(results: list[Any]) -> None:
    """Show the results that a node saved as PyTorch does: detached, unless a transform differentiates."""
    if switches.transforms:
        return
    by_number = {r.output_nr: r for r in results if isinstance(r, Tensor) and r._edge is not None}
    if not by_number:
        return
    edge = next(iter(by_number.values()))._edge
    assert edge is not None
    node = edge[0]
    for name in node.saved_names:
        saved = getattr(node, f"saved_{name}", None)
        if type(saved) is SavedOutput:
            result = results[saved.output_nr] if saved.output_nr < len(results) else None
            if result is not None:
                seen = result.detach() if result._requires_grad else result
                setattr(node, f"saved_{name}", SeenOutput(result, saved.output_nr, seen))
