"""What PyTorch says of its public names: the overloads of each, read from its schemas or from Python's signatures."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

REQUIRED = object()
"""The default of a parameter that has none."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its public name, a word for its type (`int[]`), its default, whether only a keyword reaches it."""

    name: str
    type: str
    default: Any = REQUIRED
    keyword_only: bool = False

    @property
    def is_required(self) -> bool:
        """Whether every call gives it."""
        return self.default is REQUIRED


Overload = tuple[Parameter, ...]

_CONSTRUCTORS = (
    Parameter("dtype", "ScalarType", None, True),
    Parameter("layout", "Layout", None, True),
    Parameter("device", "Device", None, True),
    Parameter("pin_memory", "bool", False, True),
    Parameter("requires_grad", "bool", False, True),
)
_ENUMERATIONS = {"Mean": 1, "contiguous_format": torch.contiguous_format, "preserve_format": torch.preserve_format}


def overloads_of(function: Any, path: str) -> list[Overload]:
    """The overloads of the public function at `path` (`torch.linalg.det`, `torch.Tensor.sum`), those with out= merged."""
    if inspect.isfunction(function):
        return [_from_python(function)]
    is_method = path.startswith("torch.Tensor.")
    found = []
    for schema in _schemas(path):
        with contextlib.suppress(ValueError):
            overload = _parse(str(schema), is_method)
            if overload is not None and overload not in found:
                found.append(overload)
    return found


def _schemas(path: str) -> list[Any]:
    *_, namespace, name = path.split(".")
    prefix = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}.get(namespace, "")
    schemas: list[Any] = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}")
    return schemas


def _parse(schema: str, is_method: bool) -> Overload | None:
    """Read a schema's text; None for forms with out=, which others cover, and for what only scripts call."""
    opened = schema.index("(")
    inside = schema[opened + 1 : schema.rindex(") ->")]
    parameters, keyword_only = [], False
    for text in _split(inside):
        if text == "*":
            keyword_only = True
            continue
        parameter = _parameter(text, keyword_only)
        if parameter.name == "out" or "Dimname" in parameter.type or ("!" in text and parameter.name != "self"):
            return None
        parameters.append(parameter)
    if "dtype" in (p.name for p in parameters) and "layout" in (p.name for p in parameters):
        parameters = [p for p in parameters if p.name not in ("dtype", "layout", "device", "pin_memory")]
        parameters += _CONSTRUCTORS
    return _as_method(parameters) if is_method else _as_function(parameters)


def _as_method(parameters: list[Parameter]) -> Overload | None:
    itself = [p for p in parameters if p.name == "self" and p.type == "Tensor"]
    return (*itself, *(p for p in parameters if p not in itself)) if itself else None


def _as_function(parameters: list[Parameter]) -> Overload:
    return tuple(
        Parameter("input", p.type, p.default, p.keyword_only) if p.name == "self" and p.type == "Tensor" else p
        for p in parameters
    )


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand in no bracket."""
    depth, start = 0, 0
    for position, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def _parameter(text: str, keyword_only: bool) -> Parameter:
    declared, _, default = text.partition("=")
    kind, name = declared.rsplit(" ", 1)
    kind = re.sub(r"\([a-z!|*> -]*\)", "", kind).replace("SymInt", "int")
    kind = re.sub(r"\[\d+\]", "[]", kind)
    if not default:
        return Parameter(name, kind, REQUIRED, keyword_only)
    return Parameter(name, kind, _default(default, kind), keyword_only)


def _default(text: str, kind: str) -> Any:
    if text in _ENUMERATIONS:
        return _ENUMERATIONS[text]
    value = ast.literal_eval(text)
    if "ScalarType" in kind and value is not None:
        return torch.float32
    return value


_ANNOTATIONS = (
    (r"Tensor\]|TensorSequence|list\[Tensor|tuple\[Tensor", "Tensor[]"),
    (r"Tensor", "Tensor"),
    (r"dtype|DType", "ScalarType"),
    (r"device", "Device"),
    (r"layout", "Layout"),
    (r"Broadcasting|list\[int\]|[Tt]uple\[int|Size|_size", "int[]"),
    (r"bool", "bool"),
    (r"float", "float"),
    (r"int", "int"),
    (r"str", "str"),
)


def _from_python(function: Any) -> Overload:
    parameters = []
    for name, given in inspect.signature(function).parameters.items():
        if given.kind in (given.VAR_KEYWORD, given.VAR_POSITIONAL) or name in ("_stacklevel", "out"):
            continue
        default = REQUIRED if given.default is inspect.Parameter.empty else given.default
        parameters.append(Parameter(name, _kind_of(given, default), default, given.kind == given.KEYWORD_ONLY))
    return tuple(parameters)


def _kind_of(given: inspect.Parameter, default: Any) -> str:
    text = "" if given.annotation is inspect.Parameter.empty else str(given.annotation)
    if text:
        return next((kind for pattern, kind in _ANNOTATIONS if re.search(pattern, text)), "?")
    for type_, kind in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str")):
        if isinstance(default, type_):
            return kind
    return "int" if given.name in ("dim", "n") else "Tensor" if default is REQUIRED else "?"


def differing_signature(theirs: Any, ours: Any) -> str | None:
    """How the Python signatures of two Python functions differ in names, kinds and defaults, or None."""
    if not inspect.isfunction(theirs):
        return None
    try:
        wanted, got = inspect.signature(theirs).parameters, inspect.signature(ours).parameters
    except (TypeError, ValueError):
        return None
    described = [
        [f"{p}={_plain(v.default)}" for p, v in parameters.items() if v.kind not in (v.VAR_KEYWORD, v.VAR_POSITIONAL)]
        for parameters in (wanted, got)
    ]
    if described[0] == described[1]:
        return None
    if any(v.kind in (v.VAR_KEYWORD, v.VAR_POSITIONAL) for p in (wanted, got) for v in p.values()):
        return None
    return f"({', '.join(described[0])}) | ({', '.join(described[1])})"


def _plain(default: Any) -> str:
    return "" if default is inspect.Parameter.empty else str(default).replace("pullback.", "torch.")
