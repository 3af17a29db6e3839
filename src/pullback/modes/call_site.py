"""How a call was written: which of its arguments were given by position and which by name.

A function cannot know that, but tools that trace programs show a call as it was written. Only the rare road of
Note [Foreign arguments] looks here.
"""

from __future__ import annotations

import dis
import inspect
import sys
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from pullback.native import extension

_ROADS = tuple(
    [f"pullback.{part}" for part in "functions generated graph modes overrid recording tensor creation".split()]
)


def as_method(name: str, function: Any) -> Any:
    """Copy a function, so that its frames are known as those of a method of Tensor. See `method_called`.

    A function of a compiled module has no frames: its method is an object that knows when it runs (native/tensor_methods.c).
    """
    if not isinstance(function, FunctionType):
        is_compiled = extension is not None and type(function).__name__ == "cython_function_or_method"
        return extension.new_method(name, function) if is_compiled else function
    code = function.__code__.replace(co_name=f"{_METHOD}{name}")
    made = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__annotations__, made.__doc__, made.__module__ = (
        function.__annotations__,
        function.__doc__,
        function.__module__,
    )
    made.__qualname__ = f"Tensor.{name}"
    return made


_METHOD = "Tensor."


def method_called() -> tuple[str, tuple[Any, ...] | None] | None:
    """Find the method that the innermost caller outside of the operations called, and its operands if it is an operator."""
    frame: FrameType | None = sys._getframe(1)
    entered: FrameType | None = None
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_ROADS):
        frame, entered = frame.f_back, frame
    if entered is None or not entered.f_code.co_name.startswith(_METHOD):
        called = extension.called_method() if extension is not None else None
        return None if called is None else (called[0], called[1] if called[0].startswith("__") else None)
    code, values = entered.f_code, entered.f_locals
    name = code.co_name.removeprefix(_METHOD)
    if not name.startswith("__"):
        return name, None
    return name, tuple([values[operand] for operand in code.co_varnames[: code.co_argcount]])


_signature_of = cache(inspect.signature)


def as_written(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], before: int = 0
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the innermost caller outside of the operations gave them; defaults are left out.

    `before` arguments stand in front of those of the call: the tensor whose method it is.
    """
    try:
        signature = _signature_of(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, kwargs
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        named = (_call_site() or ((), 0))[0]
        defaults = {p.name: p.default for p in signature.parameters.values()}
        return args, {n: v for n, v in kwargs.items() if n in named or not _is_default(v, defaults.get(n))}
    parameters = signature.parameters.values()
    values = bound.arguments
    names, written = _call_site() or ((), 0)
    given = [p.name for p in parameters if p.name in names or not _is_default(values.get(p.name, p.default), p.default)]
    by_position = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    needed = max((i + 1 for i, p in enumerate(by_position) if p.name in given and p.name not in names), default=0)
    written += before
    count = max(needed, written) if written <= len(by_position) else needed
    leading = [p.name for p in by_position[:count]]
    order = [*[n for n in names if n in given], *[n for n in given if n not in names]]
    return (
        tuple([values.get(p.name, p.default) for p in by_position[:count]]),
        {name: values.get(name, signature.parameters[name].default) for name in order if name not in leading},
    )


def _is_default(value: Any, default: Any) -> bool:
    """Whether `value` may be left out (also of a comparison: it may be anything)."""
    if value is default:
        return True
    return type(value) is type(default) and type(value) in (bool, int, float, str) and bool(value == default)


class Entered(NamedTuple):
    """A call from outside of the operations: the function, whether it is called as a method, and all arguments."""

    name: str
    is_method: bool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    parameters: tuple[str, ...]


def call_entered() -> Entered | None:
    """Find the call that the innermost caller outside of the operations made."""
    frame: FrameType | None = sys._getframe(1)
    entered: FrameType | None = None
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_INSIDE):
        frame, entered = frame.f_back, frame
    caller = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
    if entered is None or (caller.startswith("pullback.") and not caller.startswith(_IN_PYTHON)):
        return None
    code, values = entered.f_code, entered.f_locals
    is_method = code.co_name.startswith(_METHOD) or code.co_qualname.startswith(_METHOD)
    name = code.co_name.removeprefix(_METHOD).removeprefix("public_")
    if name in _WRAPPERS:
        name = str(values.get("told_name", entered.f_globals.get("told_name", "")))
        name = name or getattr(values.get("function") or values.get("operation"), "__name__", "")
    count = code.co_argcount
    parameters = code.co_varnames[:count]
    args = tuple([values.get(n) for n in parameters])
    named = {n: values.get(n) for n in code.co_varnames[count : count + code.co_kwonlyargcount]}
    after = count + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        args += tuple(values.get(code.co_varnames[after], ()))
        after += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named |= values.get(code.co_varnames[after], {})
    return Entered(name, is_method, args, named, parameters)


def compiled_method_entered() -> Entered | None:
    """Find the call of the innermost running method of a compiled module: such a method has no frame."""
    called = extension.called_method() if extension is not None else None
    if called is None:
        return None
    name, operands, named = called
    parameters = inspect.signature(getattr(type(operands[0]), name)).parameters
    return Entered(name, True, operands, named, tuple(parameters))


def as_called(entered: Entered, defaults: dict[str, Any]) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of a call that were written in it, without the tensor whose method it is.

    A call with stars does not tell which arguments were named: both readings are given.
    """
    names, written = _call_site(_INSIDE) or ((), 0)
    values = {**dict(zip(entered.parameters, entered.args, strict=False)), **entered.kwargs}
    if names or written:
        return [(entered.args[entered.is_method :][:written], {n: values[n] for n in names if n in values})]
    given = list(entered.args)  # what is a default may not have been written
    while (
        given
        and len(given) <= len(entered.parameters)
        and _is_default(given[-1], defaults.get(entered.parameters[len(given) - 1], inspect))
    ):
        given.pop()
    named = {n: v for n, v in entered.kwargs.items() if not _is_default(v, defaults.get(n))}
    by_name = {**dict(zip(entered.parameters[1:], given[1:], strict=False)), **named}
    return [(tuple(given[entered.is_method :]), named), (() if entered.is_method else tuple(given[:1]), by_name)]


_IN_PYTHON = ("pullback.nn.modules.", "pullback.nn.init", "pullback.nn.utils.", "pullback.optim.")
_WRAPPERS = ("itself", "called", "offered", "product", "told")
_INSIDE = (*_ROADS, *[f"pullback.{part}" for part in ("errors", "dispatch", "creation", "backend", "kernels")])


def is_operator() -> bool:
    """Whether the innermost caller outside of the operations wrote an operator, not a call."""
    return _call_site() is None


def _call_site(roads: tuple[str, ...] = _ROADS) -> tuple[tuple[str, ...], int] | None:
    """The keywords and the number of other arguments of the call that left the caller's frame; None for an operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(roads):
        frame = frame.f_back
    if frame is None:
        return (), 0
    places, calls = _calls_in(frame.f_code)
    # The place may be that of the instruction or that of the end of the cache which follows it.
    return calls.get(places[bisect_right(places, frame.f_lasti) - 1])


@cache
def _calls_in(code: CodeType) -> tuple[list[int], dict[int, tuple[tuple[str, ...], int]]]:
    """Read the places of all instructions, and what is known of those that are calls."""
    places: list[int] = []
    calls: dict[int, tuple[tuple[str, ...], int]] = {}
    names: tuple[str, ...] = ()
    constant: Any = ()
    for instruction in dis.get_instructions(code):
        places.append(instruction.offset)
        if instruction.opname == "KW_NAMES":
            names = code.co_consts[instruction.arg or 0]
        elif instruction.opname in ("CALL", "CALL_KW"):  # from Python 3.13 on, names are a constant below the call
            names = constant if instruction.opname == "CALL_KW" else names
            calls[instruction.offset] = names, (instruction.arg or 0) - len(names)
            names = ()
        elif not instruction.opname.startswith(("BINARY", "COMPARE")):
            calls[instruction.offset] = (), 0
        constant = instruction.argval if instruction.opname == "LOAD_CONST" else constant
    return places, calls
