"""From an operation of pullback, as interceptors see it, to the call of ATen's that a dispatch mode is shown.

Most calls follow from the name and the schema. Where PyTorch has another name, other arguments or several operations, the
operation's declaration says so (`aten=` and `parts=` in derivatives/). See Note [Dispatch].
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pullback.backend.device import CPU
from pullback.backend.dtype import from_numpy_dtype
from pullback.dispatch.arguments import arranged, takes_number_as_tensor
from pullback.dispatch.overloads import OpOverload, OpOverloadPacket, aten, declared
from pullback.dispatch.templates import template
from pullback.generated.registry import OPERATIONS, Operation
from pullback.graph.in_place import InPlaceForm
from pullback.modes.switches import switches
from pullback.tensor.tensor_base import TensorBase


class Call(NamedTuple):
    """One call of ATen."""

    overload: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Operand(NamedTuple):
    """A function as interceptors get it: the operation that it is, if it is one, and whether it writes to its input."""

    name: str
    operation: Operation | None
    in_place: bool
    parameters: tuple[str, ...]


@cache
def operand_of(function: Callable[..., Any]) -> Operand:
    """What is known of a function that was offered to interceptors."""
    if isinstance(function, InPlaceForm):
        return operand_of(function.out_of_place)._replace(in_place=True)
    name = function.__name__
    generated = function.__module__.startswith("pullback.generated")
    if generated and name in OPERATIONS:
        operation = OPERATIONS[name]
        return Operand(operation.public or name, operation, False, tuple([p[0] for p in operation.parameters]))
    if generated and name.endswith("_") and name[:-1] in OPERATIONS:
        operation = OPERATIONS[name[:-1]]
        names = tuple([p[0] for p in operation.parameters])
        return Operand(operation.public or operation.name, operation, True, names)
    parameters = tuple(inspect.signature(function).parameters)
    return Operand(name.removesuffix("_") if name.endswith("_") else name, None, name.endswith("_"), parameters)


_OTHER_PARAMETERS = {"from_": "from"}
"""Parameters that Python does not let have ATen's name."""

_OTHER_NAMES = {"item": "_local_scalar_dense"}
"""What functions that are not operations are to ATen, where they have another name there."""


def lower(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The call of ATen's that an operation is; None if it is none, so that its parts are shown instead."""
    operand = operand_of(function)
    values = _bound(function, operand, args, kwargs)
    if values is None:
        return None
    name = _OTHER_NAMES.get(operand.name, operand.name)
    operation = operand.operation
    if operation is not None and operation.aten:
        wanted = template(operation.aten)
        positional, keywords = wanted.evaluate(values)
        return _fitting(wanted.name + ("_" if operand.in_place else ""), positional, keywords, values.get("out"))
    name = f"{name}_" if operand.in_place else name
    packet = declared.get(name) or aten(name)
    if packet is None or (all(s.composite for s in packet._schemas.values()) and not _is_whole(operand, packet)):
        return None
    return _chosen(packet, values)


def _is_whole(operand: Operand, packet: OpOverloadPacket) -> bool:
    """Whether an operation is all of what PyTorch computes by other operators: then it is shown, since nothing else is."""
    if operand.operation is None:
        return False
    parameters = {"self" if p == "input" else p for p in operand.parameters}
    return any(
        {a.name for a in s.arguments} - {"dtype"} in (parameters, set(operand.parameters))
        for s in packet._schemas.values()
    )


def _bound(
    function: Callable[..., Any], operand: Operand, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments by their names."""
    if operand.operation is not None:
        if len(args) > len(operand.parameters):
            return None
        return {**dict(zip(operand.parameters, args, strict=False)), **kwargs}
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    values = {_OTHER_PARAMETERS.get(name, name): value for name, value in bound.arguments.items()}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            values.update(values.pop(name, {}))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            given = values.pop(name, ())
            if operand.name in _LOWER_BOUNDS:
                values.update(_bounds_of(operand.name, list(given), values))
            elif given:
                values[name] = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    return values


_LOWER_BOUNDS = {"randint": "low", "randint_like": "low", "random": "from"}
"""Functions that take one or two bounds by position, and the name of the first of two."""


def _bounds_of(name: str, given: list[Any], values: dict[str, Any]) -> dict[str, Any]:
    """The bounds of integers to be drawn, and the size that follows those of randint."""
    found = {"size": given.pop()} if name == "randint" and given and "size" not in values else {}
    low, high = _LOWER_BOUNDS[name], "to" if name == "random" else "high"
    names = [low, high] if len(given) > 1 or high in values else [high]
    return {**found, **dict(zip(names, given, strict=False))}


def _fitting(name: str, positional: list[Any], keywords: dict[str, Any], out: Any) -> Call | None:
    """The call that a declaration names, with its overload found by the arguments."""
    short, _, overload = name.partition(".")
    if overload.endswith("_"):
        short, overload = f"{short}_", overload.removesuffix("_")
    packet = aten(short)
    if packet is None:
        return None
    for candidate in [overload] if overload else _shown_first(packet):
        schema = packet._schemas[candidate]
        names = [a.name for a in schema.arguments if not a.kwarg_only]
        if len(positional) <= len(names):
            found = _arranged(
                packet, candidate, {**dict(zip(names, positional, strict=False)), **keywords, "out": out}, True
            )
            if found is not None:
                return found
    return None


def _shown_first(packet: OpOverloadPacket) -> list[str]:
    """The overloads, those last of which a mode sees the parts alone."""
    return sorted(packet.overloads(), key=lambda name: packet._schemas[name].composite)


def _chosen(packet: OpOverloadPacket, values: dict[str, Any]) -> Call | None:
    """The overload that takes the values."""
    names = _shown_first(packet)
    if takes_number_as_tensor(packet) and switches.current_node is None:
        names = sorted(names, key=lambda n: n not in ("Tensor", "default"))
        attempts = [True]
    else:
        attempts = [False, True]
    for lenient in attempts:
        for name in names:
            found = _arranged(packet, name, values, lenient)
            if found is not None:
                return found
    return None


def _arranged(packet: OpOverloadPacket, overload: str, values: dict[str, Any], lenient: bool) -> Call | None:
    out = values.get("out")
    schema = packet._schemas[overload]
    known = {a.name: a for a in schema.arguments}
    given = {k: _as_shown(v) for k, v in values.items() if k != "out"}
    if "self" in known and "self" not in given and "input" in given and "input" not in known:
        given["self"] = given.pop("input")
    found = arranged(schema, given, lenient=lenient)
    if found is None:
        return None
    args, kwargs = found
    if out is not None:
        name = "out" if overload in ("default", "Tensor") else f"{overload}_out"
        return Call(packet.overload(name), args, {**kwargs, "out": out})
    if "pin_memory" in known and packet.__name__ != "_to_copy" and switches.current_node is None:
        if not any(a.type == "Tensor" for a in schema.arguments):
            kwargs.setdefault("device", CPU)
        kwargs.setdefault("pin_memory", False)
        kwargs = {a.name: kwargs[a.name] for a in schema.arguments if a.name in kwargs}
    return Call(packet.overload(overload), args, kwargs)


def _as_shown(value: Any) -> Any:
    """A value as users know it: dtypes of the arrays are not."""
    kind = type(value)
    if kind is tuple or kind is list:
        return value if not any(isinstance(v, TensorBase) for v in value) else list(value)
    if kind.__module__.startswith(("numpy", "ml_dtypes")) and hasattr(value, "itemsize") and hasattr(value, "kind"):
        return from_numpy_dtype(value)
    return value
