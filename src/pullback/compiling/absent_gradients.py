"""The backward of a program where some results were not used: what depends on their gradients alone is left out.

Zeros in the place of absent gradients would not do: zero times infinity is not zero, and would be added to gradients of
results that were used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pullback.compiling.memory import laid_out
from pullback.compiling.program import Call, Program, Value, fill
from pullback.compiling.simplification import needed_calls


def without(backward: Program, absent: set[Value], gradients: set[Value]) -> Program:
    """A backward program without the gradients in `absent`; an output is None where it depends on no other gradient."""
    gone: dict[Any, Any] = dict.fromkeys(absent)
    depends: set[Any] = set(gradients)
    same: dict[Any, Any] = {}
    calls = []
    for call in backward.calls:
        if same:
            call = _with(call, same)
        read: set[Any] = set(call.reads)
        if not read & depends:
            calls.append(call)
            continue
        depends.update(call.results)
        if read & depends <= gone.keys():
            gone.update(dict.fromkeys(call.results))
        elif not read & gone.keys():
            calls.append(call)
        elif (other := _other_summand(call, gone)) is not None:
            same[call.results[0]] = other
        else:
            calls.append(_with(call, {value: _zeros(value) for value in read & gone.keys()}))
    outputs = [None if v in gone or v not in depends else same.get(v, v) for v in backward.outputs]
    made = Program([], calls, outputs)
    made.calls = needed_calls(made)
    used: set[Any] = {value for call in made.calls for value in call.reads} | set(outputs)
    made.inputs = [value for value in backward.inputs if value in used]
    return made


def _with(call: Call, others: dict[Any, Any]) -> Call:
    """A call with some of its arguments exchanged."""
    exchanged = {value: others.get(value, value) for value in call.reads}
    return replace(call, arguments=fill(call.arguments, exchanged), options=fill(call.options, exchanged))


def _other_summand(call: Call, gone: dict[Any, Any]) -> Any:
    """What a sum is if one of its two summands is not there; None for what is not such a sum."""
    if call.kernel not in ("arithmetic.add", "numpy.add") or call.options or len(call.arguments) != 2:
        return None
    left, right = call.arguments
    other = right if left in gone else left
    if type(other) is not Value or (other.shape, other.dtype) != (call.results[0].shape, call.results[0].dtype):
        return None
    return other


def _zeros(value: Value) -> Value:
    array = laid_out(0, value.shape, value.strides, value.dtype, value.place)
    return Value(value.shape, value.dtype, value.strides, array)
