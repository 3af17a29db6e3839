"""Expressions over one element of each array: loads, numbers, operations, selections.

A tree is a value: two that say the same are equal, and can be keys. What an expression costs, whether it rounds and which
names it reads are questions to its nodes. `substitute` puts expressions in the place of loads, so that one kernel's result
becomes another's operand without an array in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pullback.expressions.functions import FUNCTIONS

REAL, NUMBER, MASK, CONDITION, TEXT = "real", "number", "mask", "condition", "text"
"""Kinds: an element; a Python number of the call; true or false of an element; of the whole call; a string argument."""

ARITHMETIC = ("+", "-", "*", "/")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Load:
    """What an argument, or a step before, is called: an element of an array or mask, a number, a string."""

    name: str
    kind: str = REAL


@dataclass(frozen=True)
class Number:
    """A constant, exact as Python has it."""

    value: float
    kind: str = NUMBER

    def __eq__(self, other: object) -> bool:  # 0.0 and -0.0 are two, NaN is itself, and 1 is written otherwise than 1.0
        return isinstance(other, Number) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True)
class Quoted:
    """A string that an argument is compared with."""

    value: str
    kind: str = TEXT


@dataclass(frozen=True)
class Operation:
    """A function of expressions: of FUNCTIONS, an operator, "real" (a number as an element), or a test."""

    name: str
    arguments: tuple[Expr, ...]
    kind: str = REAL


@dataclass(frozen=True)
class Select:
    """The first where the mask holds, else the second."""

    mask: Expr
    first: Expr
    second: Expr
    kind: str = REAL


Expr: TypeAlias = "Load | Number | Quoted | Operation | Select"


@dataclass(frozen=True)
class Step:
    """A value that is computed once and has a name."""

    name: str
    value: Expr


class NamedValue(Protocol):
    """A step of any program."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> Expr: ...


AnyStep = TypeVar("AnyStep", bound=NamedValue)


@dataclass(frozen=True)
class Program:
    """Steps, each reading what stands before it, and a result."""

    steps: tuple[Step, ...]
    result: Expr

    def expressions(self) -> tuple[Expr, ...]:
        return (*[step.value for step in self.steps], self.result)


def children(expression: Expr) -> tuple[Expr, ...]:
    """The parts of an expression."""
    if isinstance(expression, Operation):
        return expression.arguments
    if isinstance(expression, Select):
        return (expression.mask, expression.first, expression.second)
    return ()


def walk(expression: Expr) -> Iterator[Expr]:
    """The expression and all parts of it, those of a part after the part."""
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack += reversed(children(part))


def loads(*expressions: Expr) -> set[str]:
    """The names that expressions read."""
    return {part.name for expression in expressions for part in walk(expression) if isinstance(part, Load)}


def read_steps(steps: Sequence[AnyStep], *wanted: Expr) -> list[AnyStep]:
    """The steps, in their order, that these expressions read, directly or through others."""
    used = loads(*wanted)
    kept = []
    for step in reversed(steps):
        if step.name in used:
            kept.append(step)
            used |= loads(step.value)
    return kept[::-1]


def called(*expressions: Expr) -> set[str]:
    """The functions of elements that expressions call; those of numbers are computed once for all elements."""
    parts = [part for expression in expressions for part in walk(expression)]
    return {part.name for part in parts if isinstance(part, Operation) and part.kind == REAL} & FUNCTIONS.keys()


def is_costly(*expressions: Expr) -> bool:
    """Whether a thread of its own pays off for few elements already."""
    return any(FUNCTIONS[name].costly for name in called(*expressions))


def is_in_float32_alone(*expressions: Expr) -> bool:
    """Whether some function is there for float32 alone."""
    return any(FUNCTIONS[name].in_float32_alone for name in called(*expressions))


def is_exact(expression: Expr) -> bool:
    """Whether nothing is rounded: the result is chosen among values, or an exact function of them."""
    for part in walk(expression):
        if isinstance(part, Operation) and part.kind == REAL and part.name not in ("neg", "real"):
            function = FUNCTIONS.get(part.name)
            if function is None or not function.exact:
                return False
    return True


def substitute(expression: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with other expressions in the place of loads."""
    if isinstance(expression, Load):
        return values.get(expression.name, expression)
    if isinstance(expression, Operation):
        arguments = tuple([substitute(argument, values) for argument in expression.arguments])
        return Operation(expression.name, arguments, expression.kind)
    if isinstance(expression, Select):
        parts = [substitute(part, values) for part in children(expression)]
        return Select(parts[0], parts[1], parts[2], expression.kind)
    return expression


def fuse(before: Program, name: str, after: Program) -> Program:
    """One program for two: `after` reads the result of `before` under `name`, and no array is made of it.

    Steps of `after` that have the name of one of `before`, or of something that `before` reads, are renamed.
    """
    taken = {step.name for step in before.steps} | loads(*before.expressions())
    reads = sum(isinstance(p, Load) and p.name == name for e in after.expressions() for p in walk(e))
    steps = list(before.steps)
    if reads > 1 and not isinstance(before.result, (Load, Number)):
        local = _unused(name, taken | (loads(*after.expressions()) - {name}))
        steps.append(Step(local, before.result))
        taken.add(local)
        values: dict[str, Expr] = {name: Load(local, before.result.kind)}
    else:
        values = {name: before.result}
    for step in after.steps:
        local = _unused(step.name, taken)
        taken.add(local)
        steps.append(Step(local, substitute(step.value, values)))
        values[step.name] = Load(local, step.value.kind)
    return Program(tuple(steps), substitute(after.result, values))


def _unused(name: str, taken: set[str]) -> str:
    """`name`, or with a number behind it."""
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique
