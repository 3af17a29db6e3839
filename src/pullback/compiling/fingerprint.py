"""When two recordings are the same program: kernels, how they are wired, and every plain value among their arguments."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import CPU, move_array
from pullback.compiling.capturing import Capture, Input
from pullback.compiling.numbers import key_of
from pullback.compiling.program import Number, Value
from pullback.tensor.size import Size


def fingerprint(made: Capture) -> tuple[Any, ...]:
    """What must be equal in two recordings for one of them to stand for the function."""
    numbers: dict[Any, int] = {}
    constants: dict[int, Any] = {}

    def name(value: Any) -> Any:
        kind = type(value)
        if kind is Value or kind is Number:
            if getattr(value, "constant", None) is not None and value not in numbers:
                constants[len(numbers)] = bytes_of(value.constant)
            return ("value", numbers.setdefault(value, len(numbers)))
        if kind is tuple or kind is list:
            return (kind, *[name(part) for part in value])
        if kind is dict:
            return (dict, *[(key, name(part)) for key, part in value.items()])
        if kind is slice:
            return (slice, name(value.start), name(value.stop), name(value.step))
        if kind is float or kind is complex:
            return (kind, repr(value))
        try:
            hash(value)
        except TypeError:
            return (kind, id(value))
        return (kind, value)

    program = made.program
    calls: list[Any] = [[_form(value) for value in program.inputs], [name(value) for value in program.inputs]]
    for call in program.calls:
        calls.append((call.kernel, name(call.arguments), name(call.options), [name(r) for r in call.results],
                      [_form(r) for r in call.results], call.is_view))  # fmt: skip
    ends = (
        [None if value is None else name(value) for value in program.outputs],
        [(place, name(value)) for place, value in program.writes],
        [_described(output) for output in made.outputs],
        made.structure,
        [(grad.input, grad.index) for grad in made.grads],
        [_where(given, made.inputs) for given in made.inputs],
        made.differentiable, made.versions, made.is_freed, made.shown,
        [key_of(expression) for _, expression in made.scalars],
        [(key_of(condition.expression), condition.outcome) for condition in made.conditions],
    )  # fmt: skip
    return (calls, ends, constants)


def bytes_of(array: Any) -> bytes:
    """The values of an array, on whatever device."""
    values: bytes = move_array(array, CPU).tobytes()
    return values


def _where(given: Input, inputs: list[Input]) -> Any:
    if given.place is not None:
        return given.place
    return ("grad", inputs.index(given.grad_of)) if given.grad_of is not None else ("tensor", id(given.tensor))


def _form(value: Any) -> Any:
    return (value.shape, value.dtype, value.strides, value.place) if type(value) is Value else value.kind


def _plain(value: Any) -> Any:
    return (type(value), repr(value)) if isinstance(value, (int, float, complex, str, Size)) else id(value)


def _described(output: Any) -> Any:
    return (
        output.index, output.is_number, output.input, output.same_as, output.window, output.requires_grad,
        _plain(output.value), key_of(output.expression),
    )  # fmt: skip
