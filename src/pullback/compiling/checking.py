"""check=True: each call runs eagerly and as a program, and the first operation that differs is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import as_array
from pullback.backend.traced_array import plain
from pullback.compiling.capture import Capture
from pullback.compiling.capturing import capture
from pullback.compiling.entries import Entry
from pullback.compiling.fingerprint import fingerprint
from pullback.compiling.memory import laid_out
from pullback.compiling.program import Call, Program, Runner, Value
from pullback.compiling.random_streams import random_states, set_random_states
from pullback.errors import AutogradError
from pullback.kernels.comparison import isclose

_TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-7, 16: 1e-7}
"""How far results may lie apart, relative to the largest, by the bytes of an element."""


class CompileDifference(AutogradError):
    """What `check=True` raises where a program gives something else than the function."""


def run_checked(entry: Entry, leaves: Sequence[Any], args: Any, kwargs: Any) -> Any:
    """Call the function itself, and the program on copies of its inputs; raise where they differ."""
    tensors = entry.tensors_of(leaves)
    copies = [_copy(plain(tensor._array)) for tensor in tensors]
    state = random_states()
    made = capture(entry.function, args, kwargs)
    if made is None:
        return entry.function(*args, **kwargs)
    _check_recording(made, entry.recorded_as)
    after = random_states()
    try:
        _check_values(entry, made, copies, state)
    finally:
        set_random_states(after)
        made.release_traced()
    return made.result


def _check_recording(made: Capture, former: Any) -> None:
    if made.stops:
        raise CompileDifference(
            f"compile(check=True): the function cannot be a program any more: {made.stops[0].describe()}"
        )
    now = fingerprint(made)
    if now == former:
        return
    for call, (one, other) in enumerate(zip(now[0], former[0], strict=False)):
        if one != other and call >= 2:
            raise CompileDifference(
                f"compile(check=True): the function does something else now, {_place(made, call - 2)}"
            )
    raise CompileDifference("compile(check=True): the function does something else now: its results are made otherwise")


def _check_values(entry: Entry, made: Capture, copies: list[Any], state: Any) -> None:
    program = made.program
    expected = [_now(made, value) for value in program.outputs[: made.shown]]
    expected += [made.inputs[place].tensor._array for place, _ in program.writes]
    given = [_copy(array) for array in copies]
    set_random_states(state)
    outputs = entry.run_forward(given)
    for update in entry.updates:
        update.run(given, outputs)
    outputs = [*outputs[: entry.shown], *[given[place] for place, _ in program.writes]]
    for actual, wanted in zip(outputs, expected, strict=True):
        if wanted is not None and actual is not None and not is_close(actual, wanted):
            raise _first_difference(made, copies, state, entry.build)


def _now(made: Capture, value: Any) -> Any:
    return None if value is None else made.array_of(value)


def _first_difference(
    made: Capture, copies: list[Any], state: Any, build: Callable[[Program], Runner]
) -> CompileDifference:
    """Find by halving the first call after which the values that were recorded and those of a program differ."""
    calls = made.program.calls
    known = [place for place, call in enumerate(calls) if call.results and _arrays(made, call) is not None]
    low, high = 0, len(known) - 1
    while low < high:
        middle = (low + high) // 2
        if _agrees(made, known[middle], copies, state, build):
            low = middle + 1
        else:
            high = middle
    where = _place(made, known[low]) if known else "in an operation whose values were written over"
    return CompileDifference(f"compile(check=True): the program gives other values than the function, {where}")


def _agrees(made: Capture, place: int, copies: list[Any], state: Any, build: Callable[[Program], Runner]) -> bool:
    call = made.program.calls[place]
    inputs = made.program.inputs[: len(copies)]
    set_random_states(state)
    made_now = build(Program(inputs, made.program.calls[: place + 1], list(call.results)))([_copy(c) for c in copies])
    arrays = _arrays(made, call)
    return arrays is None or all(map(is_close, made_now, arrays))


def _arrays(made: Capture, call: Call) -> list[Any] | None:
    """What a call gave when it was recorded, unless that was written over or is not of the forward."""
    if any(value in made.gradient_values for value in call.arguments if type(value) is Value):
        return None
    arrays = [made.recorder.computed(value) for value in call.results]
    return None if any(array is None for array in arrays) else arrays


def is_close(actual: Any, expected: Any) -> bool:
    """Whether two arrays hold the same values to rounding."""
    actual, expected = as_array(actual), as_array(expected)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if expected.dtype.kind not in "fcV" or not expected.size:
        return bool((actual == expected).all())
    tolerance = _TOLERANCE.get(expected.dtype.itemsize, 2e-2)
    finite = abs(expected[abs(expected) < float("inf")])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(isclose(actual, expected, tolerance, tolerance * max(scale, 1e-6), True).all())


def _place(made: Capture, place: int) -> str:
    calls = made.program.calls
    if place >= len(calls):
        return "at its end"
    call = calls[place]
    return f"in {call.kernel}" + ("" if call.source is None else f" at {call.source.describe()}")


def _copy(array: Any) -> Any:
    return laid_out(array, array.shape, array.strides, array.dtype)
