"""Plants one fault: an interrupt where Python looks for signals, or memory that runs out where an operation calls.

Python looks for signals where a function begins, after a call and where a loop goes back, and nowhere else: not between
the two lines of a swap. The places are those of the package's own frames, in the order in which they are reached.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any

import pullback

FOLDER = os.path.dirname(pullback.__file__)


class Interrupt(KeyboardInterrupt):
    """The planted Ctrl-C."""


class OutOfMemory(MemoryError):
    """The planted failure of an allocation."""


class Planter:
    """Counts places while a function runs, and raises at one of them."""

    def __init__(self, at: int = -1) -> None:
        self.at = at
        self.reached = 0
        self.place = ""

    def run(self, function: Callable[[], Any]) -> None:
        """Run `function` with the fault planted; it may swallow it."""
        raise NotImplementedError

    def _reach(self, frame: FrameType, kind: type[BaseException]) -> None:
        self.reached += 1
        if self.reached == self.at:
            code = frame.f_code
            self.place = f"{os.path.relpath(code.co_filename, FOLDER)}:{frame.f_lineno} {code.co_name}"
            raise kind(self.place)


class _TracingPlanter(Planter):
    def run(self, function: Callable[[], Any]) -> None:
        """Run `function` with a tracing function that raises."""
        former = sys.gettrace()
        sys.settrace(self._enter)
        try:
            function()
        finally:
            sys.settrace(former)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        raise NotImplementedError


class InterruptPlanter(_TracingPlanter):
    """Raises KeyboardInterrupt."""

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not _is_own(frame.f_code):
            return None
        self._reach(frame, Interrupt)
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _places_of(frame.f_code):
            self._reach(frame, Interrupt)
        return self._step


class MemoryPlanter(_TracingPlanter):
    """Raises MemoryError in the place of a call made by an operation, a rule or a kernel."""

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_ALLOCATING):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _calls_of(frame.f_code):
            self._reach(frame, OutOfMemory)
        return self._step


_ALLOCATING = tuple([f"{FOLDER}/{part}/" for part in ("creation", "derivatives", "formulas", "generated", "kernels")])


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith((FOLDER, "<pullback", "pullback/"))


def _handler(code: CodeType, offset: int) -> int:
    """Where an exception at this instruction goes; -1: out of the function."""
    for entry in _exception_table(code):
        if entry.start <= offset < entry.end:
            return int(entry.target)
    return -1


@cache
def _exception_table(code: CodeType) -> list[Any]:
    return list(dis._parse_exception_table(code))  # type: ignore[attr-defined]  # there is no public one


@cache
def _places_of(code: CodeType) -> frozenset[int]:
    """Where in the code Python has just looked for signals: behind calls, and where loops go back to."""
    places, call = set(), -1
    for instruction in dis.get_instructions(code):
        # An interrupt counts as raised by the call: where the next instruction is of another block, it is not a stand-in.
        if call >= 0 and _handler(code, call) == _handler(code, instruction.offset):
            places.add(instruction.offset)
        call = instruction.offset if _is_call(instruction) else -1
        if instruction.opname.startswith("JUMP_BACKWARD"):
            places.add(instruction.argval)
    return frozenset(places)


@cache
def _calls_of(code: CodeType) -> frozenset[int]:
    """Where the code calls something."""
    return frozenset([i.offset for i in dis.get_instructions(code) if _is_call(i)])


def _is_call(instruction: dis.Instruction) -> bool:
    return instruction.opname.startswith("CALL") and "INTRINSIC" not in instruction.opname
