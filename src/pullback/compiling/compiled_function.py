"""CompiledFunction: what `compile` returns. It records calls, and skips Python where a program stands for it.

# Note [Skipping Python]
A call runs eagerly and is recorded until two recordings for the same kind of arguments were the same program and nothing
stopped them. From then on, calls of that kind run the program, as long as everything the function could reach is as it
was (surroundings.py). Any doubt means eager: what stops a recording is remembered for `explain`, and after a few recordings
in vain the function runs as it is for arguments of that kind.
"""

from __future__ import annotations

import copy
import functools
import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any

from pullback.backend.dtype import default_float
from pullback.compiling.backend import build
from pullback.compiling.capturing import capture, release_traced
from pullback.compiling.checking import run_checked
from pullback.compiling.entries import Entry
from pullback.compiling.fingerprint import fingerprint
from pullback.compiling.kernel_names import current_recorder
from pullback.compiling.program import replay
from pullback.compiling.recorder import Stop
from pullback.compiling.structure import flatten
from pullback.errors import AutogradError
from pullback.modes.switches import SWITCH_DEFAULTS, process, switches
from pullback.tensor.tensor import TensorBase

ATTEMPTS = 6
"""How often one kind of arguments is recorded before the function runs eagerly for it."""
KINDS = 16
"""How many kinds of arguments get programs; others run eagerly."""


_all: weakref.WeakSet[Any] = weakref.WeakSet()


def reset_all() -> None:
    """Forget the programs of all functions."""
    for function in list(_all):
        function.reset()


def disabled(function: Callable[..., Any], reason: str | None = None) -> Callable[..., Any]:
    """A function that no program contains."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        recorder = current_recorder()
        if recorder is not None:
            recorder.stop(
                reason or f"{getattr(function, '__name__', 'a function')} is kept out of programs by disable()"
            )
        return function(*args, **kwargs)

    run.is_disabled = True  # type: ignore[attr-defined]  # compile leaves it as it is
    return run


class CompileError(AutogradError):
    """What `fullgraph=True` raises where a function cannot be one program."""


class Kind:
    """What is known of calls with arguments of one kind."""

    def __init__(self) -> None:
        self.entry: Entry | None = None
        self.former: Any = None
        """The fingerprint of the last recording."""
        self.attempts = 0
        self.stops: list[Stop] = []
        self.is_eager = False


class CompiledFunction:
    """Calls `function`, or the program that stands for it. See Note [Skipping Python]."""

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False, check: bool = False) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.check = check
        self.kinds: dict[Any, Kind] = {}
        self.runs = 0
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())
        _all.add(self)

    def reset(self) -> None:
        """Forget the programs: the next calls are recorded anew."""
        self.kinds = {}

    def followed_by_compile(self) -> tuple[Any, ...]:
        """What a function that calls this one can reach through it."""
        return (self.function,)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        return CompiledFunction(copy.deepcopy(self.function, memo), fullgraph=self.fullgraph, check=self.check)

    def __reduce__(self) -> Any:
        function = self.function
        if isinstance(function, MethodType):  # its name would lead to this object again
            return MethodType, (function.__func__, function.__self__)
        return CompiledFunction, (function,)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        try:
            key = self._key(args, kwargs, leaves)
            kind = self.kinds.get(key)
        except TypeError:  # an argument that is not hashable
            return self.function(*args, **kwargs)
        if key is None:
            return self.function(*args, **kwargs)
        if kind is None:
            if len(self.kinds) >= KINDS:
                return self.function(*args, **kwargs)
            kind = self.kinds.setdefault(key, Kind())
        if kind.is_eager:
            return self.function(*args, **kwargs)
        entry = kind.entry
        if entry is not None and entry.fits(leaves):
            self.runs += 1
            if self.check:
                return run_checked(entry, kind.former, leaves, args, kwargs)
            return entry.run(leaves, args, kwargs)
        if current_recorder() is not None:
            return self.function(*args, **kwargs)
        return self._record(kind, leaves, args, kwargs)

    def _key(self, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """What tells kinds of calls apart; None for a call that is never compiled."""
        structure = flatten((args, kwargs), leaves)
        modes: Any = True
        if process.changed:
            modes = _modes()
            if modes is None:
                return None
        parts: list[Any] = [structure, modes, default_float()]
        seen: dict[int, int] = {}
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, TensorBase):
                array = leaf._array
                first = seen.setdefault(id(leaf), place)
                parts.append((array.shape, array.strides, array.dtype, leaf._requires_grad, first, type(leaf)))
            elif isinstance(leaf, (int, float, complex, str, bytes, type(None))):
                parts.append((type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf))
            else:
                parts.append((type(leaf), id(leaf)))
        return tuple(parts)

    def _record(self, kind: Kind, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        made = capture(self.function, args, kwargs)
        if made is None:
            return self.function(*args, **kwargs)
        result = made.result
        kind.attempts += 1
        kind.entry = None
        if made.stops:
            kind.stops = made.stops
            kind.former = None
            if self.fullgraph:
                raise _not_one_program(made.stops)
        else:
            now = fingerprint(made)
            entry = Entry(made, self.function, build if now == kind.former else replay)
            result = entry.result_of(made, leaves, args, kwargs)
            if now == kind.former:
                kind.entry = entry
                kind.attempts = 0
            kind.former = now
        if result is made.result:
            release_traced()
        made.release()
        if kind.attempts >= ATTEMPTS:
            kind.is_eager = True
            if not kind.stops:
                kind.stops = [Stop("what the function computes differs from call to call", None)]
        return result


_FOLLOWED = ("grad_mode", "inference_mode", "forward_grad")
"""Switches that programs are told apart by, or that mean nothing to them."""


def _modes() -> Any:
    """The switches of this thread that a program may depend on; None where calls are not compiled."""
    state = switches.__dict__
    for name, default in SWITCH_DEFAULTS.items():
        if state[name] is not default and state[name] != default and name not in _FOLLOWED:
            return None
    return (state["grad_mode"], state["inference_mode"])


def _not_one_program(stops: list[Stop]) -> CompileError:
    return CompileError(
        f"torch.compile with fullgraph=True: the function cannot be one graph, because {stops[0].describe()}. Move this "
        "out of the function, use tensor operations instead (torch.where for a branch on values), or leave "
        "fullgraph=False: the function then runs as it is."
    )
