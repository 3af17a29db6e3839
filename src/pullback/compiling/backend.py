"""What makes a recorded program fast: exact simplification, the cut between forward and backward, and a runner.

# Note [Which compiler]
Loops are compiled by the C compiler that is there: what CC names, or gcc, cc, clang, or the one of ziglang's wheel, which
the extra `compile` brings. It is an extra, not a dependency, since it takes 411 MB, and 5 s of processor time for its own
library at its first use. Without a compiler, programs run as lists of kernel calls whose memory is let go as soon as nobody
reads it: machines without one keep all of eager's speed, since kernels are compiled already.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pullback.backend.array_module import as_array, is_array
from pullback.backend.device import find_library
from pullback.compiling.library import find_compiler
from pullback.compiling.partition import split
from pullback.compiling.plan import BuiltRunner, build_plan
from pullback.compiling.program import Call, Number, Program, Runner, Value, fill
from pullback.compiling.simplification import simplify
from pullback.compiling.sizes import without_sizes
from pullback.modes.user_warnings import warn_user

__all__ = ["build", "build_exactly", "simplify", "split"]

PATIENCE = 0.5
"""How many seconds `build` waits; from then on the program runs as it was recorded until it is planned and compiled. Forward
and backward wait one after the other."""


class _Told:
    of_no_compiler = False


def build(program: Program) -> Runner:
    """The fastest runner of a program on this machine; `describe()` says what it does, for `explain`."""
    place = device_of_program(program)
    if place is not None:
        runner: Runner = find_library(place.type).program_runner(program, CallsRunner(program))
        return runner
    if find_compiler() is None:
        _tell_of_no_compiler()
        return CallsRunner(program)
    return BuiltRunner(program, lambda: build_plan(program), CallsRunner(program), patience=PATIENCE)


def device_of_program(program: Program) -> Any:
    """The device that a program computes on; None for the CPU."""
    values = itertools.chain(program.inputs, program.outputs, *[call.results for call in program.calls])
    return next((value.place for value in values if isinstance(value, Value) and value.place is not None), None)


def build_exactly(program: Program) -> Runner:
    """A runner that gives eager's bits: fused loops round less often, and sum in another order."""
    return CallsRunner(program, "use_deterministic_algorithms(True) asks for the bits of eager")


def _tell_of_no_compiler() -> None:
    if not _Told.of_no_compiler:
        _Told.of_no_compiler = True
        warn_user(
            "compile() found no C compiler, and runs recorded kernels one by one: with gcc or clang (or CC set to one, or "
            "pip install 'pullback[compile]', which brings one) they are fused, which is several times faster"
        )


class CallsRunner:
    """Runs a program kernel by kernel, and lets memory go when nobody reads it any more."""

    def __init__(self, program: Program, reason: str = "") -> None:
        self.program = program
        self._reason = reason
        self._constants: dict[Any, Any] = {}

    @cached_property
    def _steps(self) -> list[tuple[Call, list[Any], list[Any]]]:
        """The calls, each with its arguments and with what nobody reads after it.

        Mostly a compiled program runs before they are asked for.
        """
        program = self.program
        used: set[Any] = {*program.outputs, *[value for _, value in program.writes]}
        steps: list[tuple[Call, list[Any], list[Any]]] = []
        for value in used:
            self._hold(value)
        for call in reversed(program.calls):
            read = set(call.reads)
            for value in read:
                self._hold(value)
            gone = [value for value in (*read, *call.results) if value not in used]
            steps.append((call, [without_sizes(part) for part in call.arguments], gone))
            used |= read
        return steps[::-1]

    def _hold(self, value: Any) -> None:
        if isinstance(value, Value) and value.constant is not None:
            self._constants[value] = value.constant

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        program, steps = self.program, self._steps
        arrays: dict[Any, Any] = dict(self._constants)
        arrays.update(zip(program.inputs, inputs, strict=True))
        for call, arguments, gone in steps:
            given = [arrays[part] if type(part) is Value else fill(part, arrays) for part in arguments]
            options = call.options
            made = call.function(*given, **fill(without_sizes(options), arrays)) if options else call.function(*given)
            for value, array in zip(call.results, (made,) if call.is_single else made, strict=True):
                arrays[value] = array if is_array(array) else as_array(array)
            for value in gone:
                if not isinstance(value, Number):
                    arrays.pop(value, None)
        written = [(inputs[place], arrays[value]) for place, value in program.writes]
        outputs = [None if value is None else arrays[value] for value in program.outputs]
        for target, source in written:
            target[...] = source
        return outputs

    def describe(self) -> str:
        """What runs, for `explain`."""
        return f"{len(self.program.calls)} kernels, one after the other" + (
            f" ({self._reason})" if self._reason else ""
        )
