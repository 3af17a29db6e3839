"""What makes a recorded program fast: exact simplification, the cut between forward and backward, and a runner.

These are the plain forms: nothing is planned, and each kernel runs as it was recorded.
"""

from __future__ import annotations

from pullback.compiling.program import Call, JointProgram, Number, Program, Runner, Value, replay, values_in

__all__ = ["build", "simplify", "split"]


def simplify(program: Program) -> Program:
    """Drop the calls whose results nobody reads."""
    return Program(program.inputs, _needed(program), program.outputs, program.writes)


def _needed(program: Program) -> list[Call]:
    """The calls that lead to an output, a write or an effect, in order."""
    read: set[Value | Number | None] = {*program.outputs, *[value for _, value in program.writes]}
    needed: list[Call] = []
    for call in reversed(program.calls):
        if call.is_ordered or any(result in read for result in call.results):
            read.update(values_in((call.arguments, call.options)))
            needed.append(call)
    return needed[::-1]


def split(joint: JointProgram) -> tuple[Program, Program, int]:
    """Cut a joint program: forward, whose last n outputs are kept, and backward, whose first n inputs they are.

    The forward has the outputs, the writes and every ordered call; the backward has what only gradients need. Numbers among
    the inputs may be kept too.
    """
    whole = joint.program
    own = len(whole.inputs) - joint.gradient_inputs
    shown = len(whole.outputs) - joint.gradient_outputs
    forward_inputs, gradients = whole.inputs[:own], whole.inputs[own:]
    first = _before_gradients(whole.calls, gradients)
    backward = Program([], [call for call in whole.calls if call not in first], whole.outputs[shown:])
    backward.calls = _needed(backward)
    made = {result for call in backward.calls for result in call.results} | set(gradients)
    kept: list[Value | Number] = []
    for value in _read(backward):
        if value not in made and getattr(value, "constant", None) is None and value not in kept:
            kept.append(value)
    backward.inputs = [*kept, *gradients]
    forward = Program(forward_inputs, [], [*whole.outputs[:shown], *kept], whole.writes)  # type: ignore[list-item]  # numbers
    forward.calls = _needed(
        Program(forward_inputs, sorted(first, key=whole.calls.index), forward.outputs, forward.writes)
    )
    return forward, backward, len(kept)


def _read(program: Program) -> list[Value | Number]:
    """What calls and outputs of a program read, in order."""
    read = [value for call in program.calls for value in values_in((call.arguments, call.options))]
    return [*read, *[value for value in program.outputs if value is not None]]


def _before_gradients(calls: list[Call], gradients: list[Value | Number]) -> set[Call]:
    """The calls that do not depend on gradients."""
    later: set[Value | Number] = set(gradients)
    before: set[Call] = set()
    for call in calls:
        if any(value in later for value in values_in((call.arguments, call.options))):
            later.update(call.results)
        else:
            before.add(call)
    return before


def build(program: Program) -> Runner:
    """The runner of a program."""
    return replay(program)
