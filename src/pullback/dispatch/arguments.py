"""Arguments as ATen gets them: which overload they fit, in which order they stand, and which are left out."""

from __future__ import annotations

from typing import Any

from pullback.dispatch.overloads import OpOverload, OpOverloadPacket
from pullback.dispatch.schemas import Argument, FunctionSchema
from pullback.facts import fact_of
from pullback.tensor.tensor_base import TensorBase

_NUMBERS = (int, float, complex)


def takes_number_as_tensor(packet: OpOverloadPacket) -> bool:
    """Whether PyTorch's function only knows the overload with tensors: a number becomes a tensor of no dimension on the
    way, and is still shown as a number. Backward formulas call the overloads with numbers."""
    return bool(fact_of(packet.__name__.removesuffix("_"), "number_first"))


def fits(argument: Argument, value: Any, *, number_as_tensor: bool = False) -> bool:
    """Whether a value can be passed for an argument."""
    kind = argument.type
    if value is None:
        return kind.endswith("?")
    kind = kind.removesuffix("?")
    if kind == "Tensor":
        return isinstance(value, TensorBase) or (number_as_tensor and isinstance(value, _NUMBERS))
    if kind in ("Tensor[]", "Tensor?[]"):
        return isinstance(value, (list, tuple)) and all(v is None or isinstance(v, TensorBase) for v in value)
    if kind == "Scalar":
        return isinstance(value, _NUMBERS)
    if kind == "bool":
        return isinstance(value, bool)
    if kind in ("int", "SymInt"):
        return isinstance(value, int)
    if kind == "float":
        return isinstance(value, (int, float))
    if kind.startswith(("int[", "SymInt[")):
        single = not kind.endswith("[]") and isinstance(value, int)
        return single or (isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value))
    if kind.endswith("]"):
        return isinstance(value, (list, tuple))
    if kind == "str":
        return isinstance(value, str)
    return not isinstance(value, (TensorBase, *_NUMBERS, list, tuple))


def overload_for(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload:
    """The form of an operator that takes these arguments."""
    names = packet.overloads()
    if not names:
        return packet.overload("default")
    found = _matching(packet, args, kwargs)
    if found is None:
        out = "out" in kwargs
        found = _matching(packet, args, {k: v for k, v in kwargs.items() if k != "out"})
        if found is not None and out:
            name = found._overloadname
            return packet.overload("out" if name in ("default", "Tensor") else f"{name}_out")
    return found if found is not None else packet.overload(names[0])


def _matching(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload | None:
    for lenient in (takes_number_as_tensor(packet), True):
        for name in sorted(packet.overloads(), key=lambda n: n != "Tensor") if lenient else packet.overloads():
            if _takes(packet._schemas[name], args, kwargs, lenient):
                return packet.overload(name)
    return None


def _takes(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any], lenient: bool) -> bool:
    positional = [a for a in schema.arguments if not a.kwarg_only]
    if len(args) > len(positional):
        return False
    given = dict(zip([a.name for a in positional], args, strict=False))
    if any(name in given for name in kwargs):
        return False
    given.update(kwargs)
    known = {a.name: a for a in schema.arguments}
    if any(name not in known or not fits(known[name], v, number_as_tensor=lenient) for name, v in given.items()):
        return False
    return all(a.name in given or a.has_default_value() for a in schema.arguments)


def arranged(
    schema: FunctionSchema, values: dict[str, Any], *, lenient: bool
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Values by name in the order of a schema, without those that are the default at the end; None if they do not fit."""
    known = {a.name for a in schema.arguments}
    if any(v is not None and v is not False for name, v in values.items() if name not in known):
        return None
    positional: list[Any] = []
    kept = 0
    keywords: dict[str, Any] = {}
    for argument in schema.arguments:
        default = argument.default_value if argument.has_default_value() else None
        value = values.get(argument.name)
        if value is None:
            if not argument.has_default_value() and not argument.type.endswith("?"):
                return None
            value = default
        elif not fits(argument, value, number_as_tensor=lenient):
            return None
        value = _as_listed(argument, value)
        is_default = argument.has_default_value() and _same(value, default)
        if argument.kwarg_only:
            if not is_default:
                keywords[argument.name] = value
            continue
        positional.append(value)
        if not is_default:
            kept = len(positional)
    return tuple(positional[:kept]), keywords


def _as_listed(argument: Argument, value: Any) -> Any:
    """Sizes and dimensions as lists, as ATen has them."""
    kind = argument.type.removesuffix("?")
    if isinstance(value, tuple) and kind.endswith("]"):
        return list(value)
    if isinstance(value, int) and kind.endswith("]") and not kind.endswith("[]"):
        return [value] * (int(kind[kind.index("[") + 1 : -1]) if kind[-2].isdigit() else 1)
    return value


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, TensorBase) and value == default)
