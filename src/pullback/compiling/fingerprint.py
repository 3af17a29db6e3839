"""When two recordings are the same program: kernels, how they are wired, and every plain value among their arguments."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import CPU, move_array
from pullback.compiling.capture import Capture, Input
from pullback.compiling.numbers import key_of
from pullback.compiling.program import Number, Value
from pullback.tensor.size import Size


def fingerprint(made: Capture) -> tuple[Any, ...]:
    """What must be equal in two recordings for one of them to stand for the function."""
    names = _Names()
    number_of, add = names.number_of, names.add
    program = made.program
    calls: list[Any] = [[_form(value) for value in program.inputs], [number_of(value) for value in program.inputs]]
    for call in program.calls:
        parts: list[Any] = [call.kernel, call.is_view]
        for argument in call.arguments:
            add(argument, parts)
        if call.options:
            add(call.options, parts)
        for result in call.results:
            parts += (number_of(result), result.shape, result.dtype, result.strides, result.place)
        calls.append(tuple(parts))
    ends = (
        [None if value is None else number_of(value) for value in program.outputs],
        [(place, number_of(value)) for place, value in program.writes],
        [_described(output) for output in made.outputs],
        made.structure,
        [(grad.input, grad.index) for grad in made.grads],
        [_where(given, made.inputs) for given in made.inputs],
        made.differentiable, made.versions, made.is_freed, made.shown,
        [key_of(expression) for _, expression in made.scalars],
        [(key_of(condition.expression), condition.outcome) for condition in made.conditions],
    )  # fmt: skip
    return (calls, ends, names.constants)


class _Names:
    """Numbers values in the order in which they come, and tells what an argument is."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.constants: dict[int, bytes] = {}

    def number_of(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._numbers)
            if type(value) is Value and value.constant is not None:
                self.constants[number] = bytes_of(value.constant)
        return number

    def add(self, value: Any, parts: list[Any]) -> None:
        """Append what tells a value apart: its kind, then the value, or how many parts follow."""
        kind = type(value)
        parts.append(kind)
        if kind is Value or kind is Number:
            parts.append(self.number_of(value))
        elif kind is tuple or kind is list:
            parts.append(len(value))
            for part in value:
                self.add(part, parts)
        elif kind is dict:
            parts.append(tuple(value))
            for part in value.values():
                self.add(part, parts)
        elif kind is slice:
            for part in (value.start, value.stop, value.step):
                self.add(part, parts)
        elif kind is float or kind is complex or kind.__module__ == "numpy":  # a NaN is not equal to itself
            parts.append(repr(value))
        else:
            parts.append(value if _is_hashable(value) else id(value))


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def bytes_of(array: Any) -> bytes:
    """The values of an array, on whatever device."""
    values: bytes = move_array(array, CPU).tobytes()
    return values


def _where(given: Input, inputs: list[Input]) -> Any:
    if given.grad_of is not None and given.place is None:
        return ("grad", inputs.index(given.grad_of))
    tensor = given.around if given.place is not None else given.tensor
    where = None if tensor is None else id(tensor) if given.spot is None else (id(given.spot[0]), given.spot[1])
    return (given.place, where)


def _form(value: Any) -> Any:
    return (value.shape, value.dtype, value.strides, value.place) if type(value) is Value else value.kind


def _plain(value: Any) -> Any:
    return (type(value), repr(value)) if isinstance(value, (int, float, complex, str, Size)) else id(value)


def _described(output: Any) -> Any:
    return (
        output.index, output.is_number, output.input, output.same_as, output.window, output.requires_grad,
        tuple([kind for kind, _ in output.path]),
        _plain(output.value), key_of(output.expression),
    )  # fmt: skip
