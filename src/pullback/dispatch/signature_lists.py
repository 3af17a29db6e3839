"""The signatures of functions and methods as PyTorch lists them when arguments fit none."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from pullback.backend.naming import display_namespace
from pullback.dispatch.schemas import Argument, FunctionSchema, aten_schemas

_TYPES = {
    "Scalar": "Number", "SymInt": "int", "ScalarType": "torch.dtype", "Layout": "torch.layout", "Device": "torch.device",
    "Generator": "torch.Generator", "MemoryFormat": "torch.memory_format", "Storage": "torch.Storage", "Dimname": "name",
}  # fmt: skip


class Parameter(NamedTuple):
    """One parameter of a signature, as PyTorch prints it."""

    kind: str
    name: str
    default: str | None
    by_name: bool
    takes_none: bool


class Signature(NamedTuple):
    """One signature: its text and what it says."""

    text: str
    parameters: tuple[Parameter, ...]

    @property
    def positional(self) -> list[Parameter]:
        """The parameters that go by position."""
        return [p for p in self.parameters if not p.by_name]

    def counts(self, number: int) -> bool:
        """Whether that many arguments can be given."""
        required = sum([p.default is None for p in self.parameters])
        return required <= number <= len(self.parameters)


@cache
def signatures(name: str, is_method: bool) -> tuple[list[Signature], bool]:
    """The signatures of a function or method in PyTorch's order, and whether it has older ones that are not listed.

    >>> [signature.text for signature in signatures("max", True)[0]]
    ['', 'Tensor other', 'int dim, bool keepdim = False']
    """
    line = _listed().get(f"Tensor.{name}" if is_method else name)
    if line is not None:
        return [_parse(text.strip()) for text in line[1]], line[0]
    overloads = {key: s for key, s in aten_schemas().get(name, {}).items() if not is_left_out(s)}
    found = next(iter(overloads.values())) if len(overloads) == 1 else overloads.get("default", overloads.get("Tensor"))
    if found is None:
        return [], False
    if is_method:
        return [Signature("", tuple([_parameter(a) for a in found.arguments if a.name != "self"]))], False
    parameters = [_parameter(argument) for argument in found.arguments]
    kind = "Tensor" if len(found.returns) == 1 else "tuple of Tensors"
    return [Signature("", (*parameters, Parameter(kind, "out", "None", True, True)))], False


def is_left_out(schema: FunctionSchema) -> bool:
    """Whether Python has no such form: one that writes to results of the caller's, or names dimensions."""
    written = any(argument.is_write and argument.kwarg_only for argument in schema.arguments)
    return written or any(argument.type.startswith(("Dimname", "Storage")) for argument in schema.arguments)


@cache
def _listed() -> dict[str, tuple[bool, list[str]]]:
    """The recorded signatures by name, and whether there are others that PyTorch does not list."""
    found: dict[str, tuple[bool, list[str]]] = {}
    for line in (files("pullback.dispatch") / "python_signatures.txt").read_text(encoding="utf-8").splitlines():
        name, _, text = line.lstrip("!-").partition("(")
        found[name] = line.startswith("!"), text.removesuffix(")").split("|") if line[0] != "-" else []
    return found


def _parse(text: str) -> Signature:
    parameters: list[Parameter] = []
    by_name = False
    for part in text.split(", "):
        if part == "*":
            by_name = True
        elif part:
            declared, _, default = part.partition(" = ")
            kind, _, name = declared.rpartition(" ")
            parameters.append(Parameter(kind, name, default or None, by_name, default == "None"))
    return Signature(text.replace("torch.", f"{display_namespace()}."), tuple(parameters))


def _parameter(argument: Argument) -> Parameter:
    """The parameter that an argument of an operator is in Python."""
    kind = argument.type.rstrip("?")
    if "[" in kind:
        kind = f"tuple of {_plain(kind.partition('[')[0].rstrip('?'))}s"
    else:
        kind = _plain(kind)
    name = "input" if argument.name == "self" else argument.name
    default = str(argument.default_value) if argument.has_default_value() else None
    return Parameter(kind, name, default, argument.kwarg_only, argument.type.endswith("?") or default == "None")


def _plain(kind: str) -> str:
    return _TYPES.get(kind, kind)
