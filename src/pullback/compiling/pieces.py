"""The pieces of a function that breaks, each a compiled function, and the function that calls them. See Note [Segments]."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from pullback.compiling.call_keys import open_places
from pullback.compiling.capture import Capture
from pullback.compiling.compiled_function import CompiledFunction
from pullback.compiling.entries import Entry
from pullback.compiling.function_text import CannotSplit, Spot, mentions_create_graph, text_of
from pullback.compiling.segments import Segmented
from pullback.modes.source_lines import enter_module, leave_module
from pullback.nn.modules.module import Module


class Inner(CompiledFunction):
    """A part of a function that breaks: Python runs it where its programs are small."""

    is_small = False
    """Whether calls of its function take no longer than its programs."""

    def _see(self, entry: Entry) -> None:
        programs = [entry for kind in self.kinds.values() for entry in kind.entries]
        self.is_small = self.backend is None and not self.check and all(entry.is_small() for entry in programs)


class Piece(Inner):
    """What lies between two breaks of a function."""

    def __init__(self, function: Any, lines: tuple[int, int], whole: Segments) -> None:
        owner = whole.owner
        super().__init__(function, check=owner.check, dynamic=owner.dynamic, backend=owner.backend)
        self.lines = lines
        self.is_differentiated_twice = whole.differentiates_twice
        self._whole = whole

    def _open_places(self, args: Any, kwargs: Any) -> list[int]:
        return open_places(list(args[0].values()), with_whole=True)

    def _see(self, entry: Entry) -> None:
        super()._see(entry)
        if self.is_small:
            with self._whole.owner._lock:
                self._whole.build()

    def cut(self, text: FunctionType, made: Capture) -> None:
        """Cut the whole function anew."""
        self._whole.add(made)


CALLEES = 64
"""How many functions that break are compiled for one that calls them."""


class Segments:
    """A function in pieces. See Note [Segments]."""

    def __init__(self, owner: CompiledFunction, text: FunctionType, made: Capture) -> None:
        self.owner = owner
        self._known: dict[str, Piece] = {}
        self._text = text
        self._breaks: dict[Spot, int] = dict.fromkeys(made.breaks, 1)
        self._effects = int(made.has_effects)
        self.differentiates_twice = mentions_create_graph(text)
        self._callees: dict[Any, Any] = {}
        self.build()

    def build(self) -> None:
        """Write the function anew, with what is known of its pieces."""
        made = Segmented(self._text, self._breaks, self._effects, lambda function, lines: Piece(function, lines, self))
        function = made.build(self.callee, self._known)
        self._known = made.pieces
        owner: Any = self.owner.function
        self.run: Callable[..., Any] = function
        if isinstance(owner, MethodType):
            self.run = MethodType(function, owner.__self__)
            if owner.__func__ is Module.__call__:
                self.run = _ModuleCall(owner.__self__, self.run)

    @property
    def pieces(self) -> list[Piece]:
        """The pieces, in the order of the text."""
        return sorted(self._known.values(), key=lambda piece: piece.lines)

    def add(self, made: Capture) -> None:
        """Cut at more places; one that breaks although its tensors were computed before stays as it is."""
        with self.owner._lock:
            effects = min(self._effects + made.has_effects, 3)
            if not made.breaks and effects == self._effects:
                return
            self._effects = effects
            for spot in set(made.breaks):
                self._breaks[spot] = 2 if spot in self._breaks else 1
            with contextlib.suppress(CannotSplit):
                self.build()

    def callee(self, function: Any) -> Any:
        """What to call in the place of a function that is called at a break."""
        text = text_of(function)
        if text is None or getattr(function, "is_disabled", False):
            return function
        key = (
            (id(function),) if not isinstance(function, MethodType) else (id(function.__func__), id(function.__self__))
        )
        known = self._callees.get(key)
        if known is None:
            if len(self._callees) >= CALLEES:
                return function
            called = function.__call__ if isinstance(function, Module) else function
            owner = self.owner
            compiled = Inner(called, check=owner.check, dynamic=owner.dynamic, backend=owner.backend)
            compiled.is_differentiated_twice = self.differentiates_twice
            known = self._callees[key] = (compiled, function)
        return known[known[0].is_small]


class _ModuleCall:
    """What Module.__call__ does, around a forward in pieces."""

    def __init__(self, module: Any, forward: Callable[..., Any]) -> None:
        self.module, self.forward = module, forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if text_of(self.module) is None:  # hooks came
            return self.module(*args, **kwargs)
        former = enter_module(self.module)
        try:
            return self.forward(*args, **kwargs)
        finally:
            leave_module(former)
