"""Finds what a function does beside computing: calls of functions that print, read clocks, write files, draw numbers.

What it changes in objects, surroundings.py finds by comparing. Here Python's profiler hook tells, while a function is
recorded, which built-in functions the user's own code calls. Those known to be without effect may be skipped; at any
other the recording stops.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from pullback.backend.device import in_use
from pullback.compiling.function_text import CHANGING
from pullback.compiling.number_flow import NumberWatch
from pullback.compiling.recorder import Recorder
from pullback.compiling.surroundings import LIBRARY
from pullback.graph.source_lines import PACKAGE
from pullback.native import extension

_PURE = {
    getattr(builtins, name)
    for name in """
    abs all any ascii bin callable chr divmod format getattr hasattr hash hex id isinstance issubclass iter len max min next
    oct ord pow repr round setattr delattr sorted sum vars dir globals locals __build_class__ __import__
    """.split()
}
_PURE_MODULES = frozenset(["math", "cmath", "operator", "_operator", "itertools", "_functools", "_collections", "_abc",
                           "_thread", "_contextvars", "_weakref", "_bisect", "_heapq", "_struct"])  # fmt: skip
_PURE_OWNERS = (list, dict, tuple, set, frozenset, str, bytes, int, float, complex, type, range, slice)


def _is_pure(function: Any) -> bool:
    if isinstance(function, type):
        return True
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type(sys)):
        return isinstance(owner, _PURE_OWNERS) or type(owner).__module__.partition(".")[0] in (
            "pullback",
            "collections",
        )
    try:
        if function in _PURE:
            return True
    except TypeError:
        return False
    objclass = getattr(function, "__objclass__", None)
    if objclass is not None:
        return issubclass(objclass, _PURE_OWNERS) or objclass.__module__.partition(".")[0] == "pullback"
    module = getattr(function, "__module__", None) or ""
    return module in _PURE_MODULES or module.startswith("pullback") or module == "numpy"


@contextmanager
def watching_calls(
    recorder: Recorder, is_held: Callable[[Any], bool], numbers: NumberWatch | None = None
) -> Iterator[None]:
    """Stop the recording where the user's code calls a built-in function that may have an effect.

    `is_held` says whether a container was there before, so that changing it is an effect; `numbers` is told of calls.
    """
    kinds: dict[int, int] = {}  # by identity: the hash of a code is made of all that it holds
    held: list[CodeType] = []
    noted: set[int] = set()
    own: dict[int, CodeType] = {}
    files = (PACKAGE, *[sys.modules[type(library).__module__].__file__ or PACKAGE for library in in_use])
    former: Any = sys.getprofile()

    def kind_of(code: CodeType) -> int:
        kind = kinds.get(id(code))
        if kind is None:
            name = code.co_filename
            kind = kinds[id(code)] = _OWN if name.startswith(files) else _LIBRARYS if _is_librarys(name) else _USERS
            held.append(code)
        return kind

    def begin() -> None:
        if extension is None:
            sys.setprofile(watching[0])
        else:  # without the events of own functions, at which nothing is to be done
            extension.watch_frames(watching[0], own)

    def is_users(frame: FrameType) -> bool:
        """Whether a function is the user's, or one of Python's library that acts for it."""
        if frame.f_globals.get("__name__", "").startswith("pullback."):  # one that dataclasses wrote
            return False
        asking: FrameType | None = frame
        while asking is not None and kind_of(asking.f_code) == _LIBRARYS:
            asking = asking.f_back
        return asking is not None and kind_of(asking.f_code) == _USERS

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if id(code) not in noted:
                noted.add(id(code))
                is_own = kind_of(code) == _OWN
                _note_names(recorder, code, is_own)
                if is_own:
                    own[id(code)] = code
            if numbers is not None and is_users(frame):
                numbers.enter(frame)
            return
        if event == "return":
            if numbers is not None and numbers.is_inside(frame):
                sys.setprofile(None)
                numbers.leave(frame, argument)
                begin()
            return
        if event != "c_call":
            return
        if argument in _BY_NAME and kind_of(frame.f_code) != _OWN:
            recorder.reads_any_name = True
        changes = getattr(argument, "__name__", "") in CHANGING and is_held(getattr(argument, "__self__", None))
        reads = _reads_numbers(argument)
        if _is_pure(argument) and not changes and not reads:
            return
        if not is_users(frame):
            return
        if reads:
            recorder.use_number()
            recorder.followed.read()
        if changes or not _is_pure(argument):
            sys.setprofile(None)
            recorder.stop(f"{getattr(argument, '__name__', argument)}() is called, which may do more than compute")
            begin()

    watching: list[Any] = [watch]
    begin()
    try:
        yield
    finally:
        if callable(former):
            sys.setprofile(former)
        else:  # cProfile's, which Python does not take back as a function
            sys.setprofile(None)
            if former is not None:
                former.enable()
        watching.clear()  # it would hold itself, and the recorder with all that was recorded


_BY_NAME: Any = (getattr, hasattr, vars, dir)


_READING_OBJECTS = tuple([PACKAGE + part + os.sep for part in ("nn", "optim", "distributions", "utils", "func")])
"""The parts of this package that read attributes of objects whose classes users derived from theirs."""


def _note_names(recorder: Recorder, code: CodeType, is_own: bool) -> None:
    names = set(code.co_names)
    if is_own:
        if code.co_filename.startswith(_READING_OBJECTS):
            recorder.own_names.update(names)
    else:
        recorder.names.update(names)
        texts = [text for text in code.co_consts if type(text) is str]
        recorder.names.update(texts)
        if any("%" in text for text in texts):  # `"%f" % number` does not ask the number
            recorder.formats_numbers = True
            recorder.followed.read()
            recorder.use_number()
        recorder.reads_any_name |= "__dict__" in names or "attrgetter" in names or "__getattr__" in names


def _reads_numbers(function: Any) -> bool:
    """Whether a function reads a number without asking it."""
    return (getattr(function, "__module__", None) or "") in ("math", "cmath", "_struct", "numpy")


_OWN, _LIBRARYS, _USERS = range(3)


def _is_librarys(name: str) -> bool:
    """Whether a file belongs to Python's library or to an installed package: it acts for whoever calls it."""
    return name.startswith(("<frozen", *LIBRARY))
