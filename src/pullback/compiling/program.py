"""What was recorded of a function: arrays, and the kernels that are called on them, in order.

A program is flat and functional. Kernels take arrays and give arrays; no call writes to an array that another value
names. What a function writes in place (an argument, a buffer, a parameter, a `.grad`) is an output with a place to be
copied to (`writes`). A number that changes from call to call is an input too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.backend.array_module import as_array, is_array


@dataclass(eq=False, slots=True)
class Value:
    """An array of the program: an input, a constant, or what a call gives."""

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...]
    """In bytes, as eager execution laid the array out. What comes out of the program has these strides."""
    constant: Any = None
    """The array itself, where it belongs to the program and not to a call of it."""
    place: Any = None
    """The device that it lies on; None for the CPU."""


@dataclass(eq=False, slots=True)
class Number:
    """A Python number that changes from call to call; it stands among the inputs."""

    kind: type


@dataclass(eq=False, slots=True)
class Call:
    """A kernel (`family.name`, as in kernels/), what it was given, and what it gave."""

    kernel: str
    function: Callable[..., Any]
    """The kernel itself, NumPy or compiled C: what it gives is right, whatever is made faster."""
    arguments: tuple[Any, ...]
    """Values, Numbers and plain Python values, nested in tuples, lists and dictionaries."""
    options: dict[str, Any]
    results: list[Value]
    is_single: bool = True
    """Whether the kernel gives one array and not a tuple."""
    is_view: bool = False
    """Whether the result shares the memory of the first argument."""
    is_ordered: bool = False
    """Whether it draws random numbers or has another effect: it is never dropped, repeated or moved past another such."""
    source: Any = None
    """The SourceLine of the user's program."""
    in_place: Callable[..., Any] | None = None
    """The same with the results written over the arguments that they are new values of: `optimizer.update` takes one list
    of rows, each a parameter, its gradient and its state, and gives the new values of all but the gradients, in order."""
    _reads: tuple[Value | Number, ...] | None = field(init=False, default=None, repr=False)

    @property
    def reads(self) -> tuple[Value | Number, ...]:
        """The Values and Numbers among the arguments and options, in order. Every pass over a program asks for them."""
        if self._reads is None:
            found: list[Value | Number] = []
            _collect(self.arguments, found)
            if self.options:
                _collect(self.options, found)
            self._reads = tuple(found)
        return self._reads


@dataclass
class Program:
    """Inputs, calls, and outputs; `writes` are pairs (index among the inputs, value copied into that input's array)."""

    inputs: list[Value | Number]
    calls: list[Call] = field(default_factory=list)
    outputs: list[Value | None] = field(default_factory=list)
    writes: list[tuple[int, Value]] = field(default_factory=list)


@dataclass
class JointProgram:
    """Forward and backward in one: the last `gradient_inputs` inputs are gradients of outputs, and the last
    `gradient_outputs` outputs are gradients of inputs (None where there is none)."""

    program: Program
    gradient_inputs: int
    gradient_outputs: int


Runner = Callable[[Sequence[Any]], list[Any]]
"""Takes the inputs (arrays and numbers) and gives the outputs; writes are done when it returns."""


def replay(program: Program) -> Runner:
    """The reference runner: one kernel after the other, nothing planned. The backend's runners must agree with it.

    `run.describe()` says what it does, for `explain`.
    """
    constants = {value: value.constant for value in _values_of(program) if value.constant is not None}

    def run(inputs: Sequence[Any]) -> list[Any]:
        arrays: dict[Any, Any] = dict(constants)
        arrays.update(zip(program.inputs, inputs, strict=True))
        for call in program.calls:
            given = fill(call.arguments, arrays)
            options = fill(call.options, arrays)
            made = call.function(*given, **options)
            for value, array in zip(call.results, (made,) if call.is_single else made, strict=True):
                arrays[value] = array if is_array(array) else as_array(array)  # NumPy gives numbers for no dimensions
        written = [(inputs[place], arrays[value]) for place, value in program.writes]
        outputs = [None if value is None else arrays[value] for value in program.outputs]
        for target, source in written:
            target[...] = source
        return outputs

    run.describe = lambda: f"{len(program.calls)} kernels, one after the other"  # type: ignore[attr-defined]  # for explain
    return run


def fill(given: Any, arrays: dict[Any, Any]) -> Any:
    """`given` with arrays and numbers in place of the Values and Numbers that it holds."""
    kind = type(given)
    if kind is Value or kind is Number:
        return arrays[given]
    if kind is tuple or kind is list:
        return kind([fill(part, arrays) for part in given])
    if kind is dict:
        return {key: fill(part, arrays) for key, part in given.items()}
    return given


def values_in(given: Any) -> list[Value | Number]:
    """The Values and Numbers in a nesting of arguments, in order."""
    found: list[Value | Number] = []
    _collect(given, found)
    return found


def _collect(given: Any, found: list[Value | Number]) -> None:
    kind = type(given)
    if kind is Value or kind is Number:
        found.append(given)
    elif kind is tuple or kind is list:
        for part in given:
            if type(part) is Value:
                found.append(part)
            elif type(part) in _NESTED:
                _collect(part, found)
    elif kind is dict:
        for part in given.values():
            _collect(part, found)


_NESTED = (tuple, list, dict, Number)


def _values_of(program: Program) -> Iterator[Value]:
    for call in program.calls:
        for value in call.reads:
            if type(value) is Value:
                yield value
    for output in program.outputs:
        if type(output) is Value:
            yield output
    for _, value in program.writes:
        yield value
