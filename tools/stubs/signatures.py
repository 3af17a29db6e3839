"""Signatures as a stub writes them, from the schemas of ATen's operators."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable
from typing import Any

from pullback.dispatch.schemas import Argument, FunctionSchema, aten_schemas
from pullback.dispatch.signature_lists import is_left_out
from pullback.tensor.return_types import RETURN_TYPES

_TYPES = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "_int", "SymInt": "_int", "float": "_float", "bool": "_bool",
    "str": "str", "ScalarType": "_dtype", "Layout": "_layout", "Device": "DeviceLike", "Generator": "_Generator",
    "MemoryFormat": "_memory_format", "complex": "builtins.complex", "Storage": "_UntypedStorage", "Stream": "Any",
}  # fmt: skip
_LISTS = {"Tensor": "Sequence[Tensor]", "int": "Sequence[_int]", "SymInt": "Sequence[_int]", "float": "Sequence[_float]",
          "bool": "Sequence[_bool]", "Scalar": "Sequence[Number]", "str": "Sequence[str]"}  # fmt: skip
_SIZES = ("size", "shape", "dims", "repeats", "sizes")
_MAKING = ("dtype", "layout", "device", "pin_memory")


def has_schema(name: str) -> bool:
    """Whether a function can be written from schemas."""
    return bool(_schemas(name))


def signatures(name: str, shown: str, function: Callable[..., Any] | None, *, method: bool) -> list[str]:
    """The definitions of a function or method, one per schema; `shown` is its name in the stub."""
    made: list[str] = []
    for schema in _schemas(name):
        if method and not _starts_with_self(schema):
            continue
        for text in _forms(schema, name, shown, _takes_out(function), method=method):
            if text not in made:
                made.append(text)
    if len(made) > 1:
        made = [f"@overload\n{text}" for text in made]
    return made


def _schemas(name: str) -> list[FunctionSchema]:
    found = aten_schemas().get(name, {}).values()
    return [s for s in found if not is_left_out(s)]


def _starts_with_self(schema: FunctionSchema) -> bool:
    names = [argument.name for argument in schema.arguments]
    return "self" in names or names[:1] == ["input"]


def _takes_out(function: Callable[..., Any] | None) -> bool:
    try:
        return function is not None and "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _forms(schema: FunctionSchema, name: str, shown: str, takes_out: bool, *, method: bool) -> list[str]:
    """One definition, and a second one where sizes may be given one by one."""
    arguments = list(schema.arguments)
    if method:
        arguments.remove(next((a for a in arguments if a.name == "self"), arguments[0]))
    returned = _returned(schema, name, shown)
    extra = [] if method or not takes_out else [f"out: {_out_type(schema)} | None = None"]
    making = {a.name for a in arguments if a.kwarg_only}.issuperset(_MAKING)
    if making:
        extra.append("requires_grad: _bool = False")
        if name.startswith("sparse_"):  # an option of the functions in Python, which no schema has
            extra.append("check_invariants: _bool | None = None")
    made = [_definition(arguments, extra, shown, returned, method=method, spread=False)]
    last = [a for a in arguments if not a.kwarg_only]
    if (
        last
        and last[-1].name in _SIZES
        and last[-1].type in ("SymInt[]", "int[]")
        and (method or making or len(last) == 1)
    ):
        made.append(_definition(arguments, extra, shown, returned, method=method, spread=True))
    return made


def _definition(
    arguments: list[Argument], extra: list[str], shown: str, returned: str, *, method: bool, spread: bool
) -> str:
    positional = [a for a in arguments if not a.kwarg_only]
    parts = ["self"] if method else []
    for argument in positional[:-1] if spread else positional:
        parts.append(_parameter(argument))
    named = [_parameter(a) for a in arguments if a.kwarg_only] + extra
    if spread:
        parts.append(f"*{positional[-1].name}: _int")
    elif named:
        parts.append("*")
    return f"def {shown}({', '.join(parts + named)}) -> {returned}: ..."


def _parameter(argument: Argument) -> str:
    name = "input" if argument.name == "self" else argument.name
    name = f"{name}_" if keyword.iskeyword(name) else name
    default = " = ..." if argument.has_default_value() or argument.name == "generator" else ""
    return f"{name}: {_type(argument.type)}{default}"


def _type(text: str) -> str:
    """A type of a schema as Python writes it: `int[2]?` is a number or several, or None."""
    optional = text.endswith("?")
    text = text.rstrip("?")
    found = re.fullmatch(r"(\w+)(\??)\[(\d*)\]", text)
    if found is None:
        made = _TYPES[text]
    elif found[2]:
        made = f"Sequence[{_TYPES[found[1]]} | None]"
    else:
        made = _LISTS[found[1]]
        if found[3]:
            made = f"{_TYPES[found[1]]} | {made}"
    return f"{made} | None" if optional else made


def _returned(schema: FunctionSchema, name: str, shown: str) -> str:
    kinds = schema.returns
    if not kinds:
        return "None"
    types = [_returned_type(kind) for kind in kinds]
    if len(types) == 1:
        return types[0]
    fields = RETURN_TYPES.get(name)
    if fields is not None and len(fields._names) == len(types):
        return f"return_types.{name}"
    return f"tuple[{', '.join(types)}]"


def _returned_type(kind: str) -> str:
    if kind.endswith("[]"):
        return f"tuple[{_TYPES[kind[:-2]]}, ...]"
    return {"Scalar": "Any"}.get(kind) or _type(kind)


def _out_type(schema: FunctionSchema) -> str:
    count = len(schema.returns)
    return "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
