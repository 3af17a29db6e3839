"""The signatures of a function as PyTorch lists them when arguments fit none: one line per overload of its schema."""

from __future__ import annotations

from functools import cache

from pullback.backend.naming import display_namespace
from pullback.dispatch.schemas import Argument, FunctionSchema, aten_schemas

_TYPES = {
    "Scalar": "Number", "SymInt": "int", "ScalarType": "{}.dtype", "Layout": "{}.layout", "Device": "{}.device",
    "Generator": "{}.Generator", "MemoryFormat": "{}.memory_format", "Storage": "{}.Storage", "Dimname": "name",
}  # fmt: skip
_OUT_OF_PYTHON = ("Dimname", "Storage")


@cache
def signatures_of(name: str) -> tuple[str, ...]:
    """What a function takes, as in `Tensor input, int dim, bool keepdim = False`; () for one that ATen does not know.

    >>> signatures_of("max")
    ('Tensor input', 'Tensor input, int dim, bool keepdim = False', 'Tensor input, Tensor other')
    """
    overloads = aten_schemas().get(name, {}).values()
    return tuple([_signature(schema) for schema in overloads if not _is_left_out(schema) or len(overloads) == 1])


def _is_left_out(schema: FunctionSchema) -> bool:
    """Whether Python has no such form: one that writes to results of the caller's, or names dimensions."""
    written = any(argument.is_write and argument.kwarg_only for argument in schema.arguments)
    return written or any(argument.type.startswith(_OUT_OF_PYTHON) for argument in schema.arguments)


def _signature(schema: FunctionSchema) -> str:
    parts: list[str] = []
    for argument in schema.arguments:
        if argument.kwarg_only and "*" not in parts:
            parts.append("*")
        parts.append(_argument(argument))
    return ", ".join(parts)


def _argument(argument: Argument) -> str:
    kind = argument.type.partition("(")[0] + argument.type.rpartition(")")[2] if "(" in argument.type else argument.type
    kind = kind.rstrip("?")
    if "[" in kind:
        kind = f"tuple of {_plain(kind.partition('[')[0].rstrip('?'))}s"
    else:
        kind = _plain(kind)
    name = "input" if argument.name == "self" else argument.name
    return f"{kind} {name} = {_shown(argument)}" if argument.has_default_value() else f"{kind} {name}"


def _plain(kind: str) -> str:
    return _TYPES.get(kind, kind).format(display_namespace())


def _shown(argument: Argument) -> str:
    value = argument.default_value
    if argument.name == "pin_memory":
        return "False"
    if "ScalarType" in argument.type and isinstance(value, int):  # PyTorch's number of the dtype
        return f"{display_namespace()}.{'int64' if value == 4 else 'float32'}"
    return f'"{value}"' if isinstance(value, str) else str(value)
