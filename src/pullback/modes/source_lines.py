"""The user's source lines and modules as they are noted while a program runs. See Note [Source lines]."""

from __future__ import annotations

import linecache
import os
import sys
import threading
import weakref
from collections.abc import Callable
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from pullback.backend.unpromised_bits import UnpromisedBits
from pullback.native import extension

notes: Any = extension if hasattr(extension, "bind_cuts") else None
"""The extension module; None where it was not built, or from older sources that note no lines."""

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
"""Python's own library, in whose folder others are installed."""
HIDDEN = "__pullback_hidden__"
"""A module whose globals hold this name with a true value is passed over when the user's line is looked for."""
WRITES_KEPT = 32


class SourceLine:
    """A place in a program: the code that ran, the instruction that it was at, and the module around.

    A negative offset means the function itself.
    """

    __slots__ = ("code", "module", "offset")

    def __init__(self, code: CodeType, offset: int, module: ModulePath | None = None) -> None:
        self.code = code
        self.offset = offset
        self.module = module

    @property
    def place(self) -> tuple[str, int]:
        """The file and the number of the line."""
        if self.offset < 0:
            return self.code.co_filename, self.code.co_firstlineno
        position = next(islice(self.code.co_positions(), self.offset // 2, None), None)
        line = position[0] if position is not None else None
        return self.code.co_filename, self.code.co_firstlineno if line is None else line

    @property
    def text(self) -> str:
        """The line itself, "" where its file cannot be read."""
        return linecache.getline(*self.place).strip()

    def describe(self) -> str:
        """Describe the place, with the line's text where that can be found."""
        file, line = self.place
        return f"{file}:{line}" + (f" ({self.text})" if self.text else "")

    def describe_fully(self) -> str:
        """Describe the place and, where there is one, the path of the module around."""
        path = "" if self.module is None else self.module.describe()
        return self.describe() + (f", in the module {path}" if path else "")

    def __repr__(self) -> str:
        return f"<SourceLine {self.describe()}>"


class ModulePath:
    """An nn.Module that is being called, and the one that called it: names are looked up when they are shown."""

    __slots__ = ("kind", "parent", "reference")

    def __init__(self, reference: weakref.ref[Any], parent: ModulePath | None) -> None:
        self.reference = reference
        self.parent = parent
        self.kind = type(reference()).__name__

    def describe(self) -> str:
        """The names from the outermost module down, as in `encoder.layers.0.linear1`; "" for the outermost itself.

        A module that its caller does not hold by name is shown by its class.
        """
        names: list[str] = []
        path = self
        while path.parent is not None:
            names.append(_name_within(path.parent.reference(), path.reference()) or path.kind)
            path = path.parent
        return ".".join(reversed(names))


def _name_within(outer: Any, inner: Any) -> str | None:
    if outer is None or inner is None:
        return None
    return next((name for name, module in outer.named_modules() if module is inner), None)


def is_hidden(code: CodeType, scope: dict[str, Any]) -> bool:
    """Whether frames of this code are passed over: the package's, Python's own, and those of modules that ask for it."""
    file = code.co_filename
    if file.startswith((PACKAGE, "<frozen ")) or scope.get(HIDDEN):
        return True
    return file.startswith(STANDARD) and not file.startswith(("site-packages", "dist-packages"), len(STANDARD))


# The functions of native/source_lines.c in Python, for where it was not built.


class _State(threading.local):
    wish = 0
    path: ModulePath | None = None


class _Process:
    wanted = 0


_state = _State()


def _source_lines_wanted() -> bool:
    return _state.wish > 0 if _state.wish else bool(_Process.wanted)


def _want_source_lines(value: int) -> int:
    former, _Process.wanted = _Process.wanted, value
    return former


def _want_source_lines_here(value: int) -> int:
    former, _state.wish = _state.wish, value
    return former


def _source_line() -> SourceLine | None:
    return calling_line() if (_Process.wanted or _state.wish) and _source_lines_wanted() else None


def calling_line() -> SourceLine | None:
    """Find the user's line that runs now by walking the frames, also where lines are off."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_hidden(frame.f_code, frame.f_globals):
            return SourceLine(frame.f_code, frame.f_lasti, _state.path)
        frame = frame.f_back
    return None


UnpromisedBits.calling_line = staticmethod(calling_line)


def _note_write(lines: list[SourceLine] | None) -> list[SourceLine] | None:
    line = _source_line()
    if line is None:
        return None
    return [*(lines or ())[-WRITES_KEPT:], line]


def _enter_module(module: Any) -> ModulePath | None:
    former = _state.path
    if _source_lines_wanted():
        _state.path = ModulePath(weakref.ref(module), former)
    return former


def _leave_module(former: ModulePath | None) -> None:
    _state.path = former


source_line: Callable[[], SourceLine | None] = getattr(notes, "source_line", _source_line)
"""The user's line that runs now; None where lines are off or no frame is the user's."""
note_write: Callable[[list[SourceLine] | None], list[SourceLine] | None] = getattr(notes, "note_write", _note_write)
"""The lines of a tensor's last writes with the current one added; None where lines are off."""
enter_module: Callable[[Any], ModulePath | None] = getattr(notes, "enter_module", _enter_module)
"""Begin the call of a module; the result is for `leave_module`."""
leave_module: Callable[[ModulePath | None], None] = getattr(notes, "leave_module", _leave_module)
source_lines_wanted: Callable[[], bool] = getattr(notes, "source_lines_wanted", _source_lines_wanted)
"""Whether this thread notes source lines."""
want_source_lines: Callable[[int], int] = getattr(notes, "want_source_lines", _want_source_lines)
want_source_lines_here: Callable[[int], int] = getattr(notes, "want_source_lines_here", _want_source_lines_here)
"""Set lines for this thread: on (1), off (-1), or as the process (0). Return the former setting."""
recorded_nodes: Callable[[], int] = getattr(notes, "recorded_nodes", lambda: -1)
"""The sequence number of the node that this thread records next; -1 where that is not known."""


CHEAP: bool = notes is not None and notes.bind_source_lines(SourceLine, ModulePath, is_hidden)
"""Whether lines cost so little that they are on by default."""
want_source_lines(int(CHEAP))
