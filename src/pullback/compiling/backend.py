"""What makes a recorded program fast: exact simplification, the cut between forward and backward, and a runner."""

from __future__ import annotations

from pullback.compiling.partition import split
from pullback.compiling.plan import BuiltRunner, NotPlanned, build_plan
from pullback.compiling.program import Program, Runner, replay
from pullback.compiling.simplification import simplify

__all__ = ["build", "simplify", "split"]

PATIENCE = 1.0
"""How many seconds `build` waits for the compiler; from then on the program runs as it was recorded until it is done."""


def build(program: Program) -> Runner:
    """The fastest runner of a program on this machine; `describe()` says what it does, for `explain`."""
    try:
        plan = build_plan(program)
    except NotPlanned:
        return replay(program)
    return BuiltRunner(program, plan, patience=PATIENCE)
