"""Shows calls of ATen to dispatch modes, the innermost first, and then to the classes of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pullback.dispatch.overloads import OpOverload
from pullback.modes.interception import dispatch, set_dispatch_modes
from pullback.modes.switches import process, switched, switches


def dispatching_types(values: Iterable[Any]) -> list[type]:
    """The classes among `values` that have a `__torch_dispatch__` of their own, subclasses before their bases."""
    found: list[type] = []
    known = dispatch.types
    if not known:
        return found
    for value in values:
        cls = type(value)
        candidates = dispatching_types(value) if cls is list or cls is tuple else [cls] if cls in known else []
        for candidate in candidates:
            if candidate not in found:
                position = next((i for i, other in enumerate(found) if issubclass(candidate, other)), len(found))
                found.insert(position, candidate)
    return found


def show_or_run(overload: OpOverload, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operator of the user's own: shown to modes and classes where there are any, else `run` itself."""
    if process.changed and (switches.dispatch_modes or dispatching_types((*args, *kwargs.values()))):
        return call(overload, args, kwargs)
    return run(*args, **kwargs)


def call(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a call below autograd: by the innermost mode, else by the classes of its arguments, else by itself."""
    with switched("below_autograd", True), switched("dual_level", -1):
        return _call(overload, args, kwargs)


def _call(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(dispatching_types((*args, *kwargs.values())))
    modes = switches.dispatch_modes
    for depth in range(len(modes) - 1, -1, -1):
        set_dispatch_modes(modes[:depth])
        try:
            result = modes[depth].__torch_dispatch__(overload, types, args, kwargs)
        finally:
            set_dispatch_modes(modes)
        if result is not NotImplemented:
            return result
    for cls in types:
        set_dispatch_modes(())
        try:
            result = cls.__torch_dispatch__(overload, types, args, kwargs)  # type: ignore[attr-defined]  # it has one
        finally:
            set_dispatch_modes(modes)
        if result is not NotImplemented:
            return result
    if modes or types:
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.{overload}'; all __torch_dispatch__ handlers returned "
            "NotImplemented: "
            f"{[*[type(m).__name__ for m in modes[::-1]], *[t.__name__ for t in types]]}. "
            "One of them must answer, as by calling func(*args, **kwargs)."
        )
    return overload(*args, **kwargs)
