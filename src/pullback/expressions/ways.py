"""The ways through a kernel's text: how its tests are decided, and the variant that each way makes.

Note [Rendered kernels] in reader.py explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pullback.expressions.tree import (
    MASK,
    NUMBER,
    REAL,
    Expr,
    Load,
    Number,
    Operation,
    Program,
    Select,
    Step,
    is_costly,
    is_in_float32_alone,
    loads,
    read_steps,
)

_MOST_PATHS = 64


class Unrenderable(Exception):
    """Something that expressions have no word for, or that the Python kernel refuses."""


class Refused(Unrenderable):
    """Something that the Python kernel raises for."""


class NeedsNumber(Exception):
    """A test on an operand: the kernel can be compiled only for calls in which that operand is a Python number."""


@dataclass(frozen=True)
class Optional:
    """A number or an array that may be None."""

    load: Load


@dataclass
class Variant:
    """One way through a kernel: under `conditions`, what `program` computes; None where expressions have no word.

    Where one of the tests in `beyond` holds for an element, libm computes them all.
    """

    conditions: list[tuple[Expr, bool]]
    program: Program | None
    beyond: list[Expr]
    reason: str = ""

    @property
    def is_costly(self) -> bool:
        return self.program is not None and is_costly(*self.program.expressions())

    @property
    def is_for_float32(self) -> bool:
        return self.program is not None and is_in_float32_alone(*self.program.expressions())

    def reads(self, name: str) -> bool:
        return self.program is not None and name in loads(*self.program.expressions())


@dataclass
class Way:
    """The state of one walk through a kernel: how tests were decided, and which steps were taken."""

    decisions: list[bool]
    taken: list[bool] = field(default_factory=list)
    conditions: dict[Expr, bool] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    beyond: list[Expr] = field(default_factory=list)

    def decide(self, test: Expr) -> bool:
        """Whether this way takes a test as true."""
        if any(holds and _contradict(test, other) for other, holds in self.conditions.items()):
            return False
        if test not in self.conditions:
            place = len(self.taken)
            choice = self.decisions[place] if place < len(self.decisions) else True
            self.taken.append(choice)
            self.conditions[test] = choice
        return self.conditions[test]

    def keep(self, name: str, value: Any) -> Any:
        """Give an expression over elements a name, so that it is computed once."""
        if not isinstance(value, (Operation, Select)) or value.kind not in (REAL, MASK):
            return value
        unique, number = name, 2
        while unique in self.names:
            unique, number = f"{name}_{number}", number + 1
        self.names.add(unique)
        self.steps.append(Step(unique, value))
        return Load(unique, value.kind)


def _contradict(first: Expr, second: Expr) -> bool:
    """Whether two tests say that one argument is equal to two different numbers."""
    if not (isinstance(first, Operation) and isinstance(second, Operation) and first.name == second.name == "=="):
        return False
    (left, one), (right, other) = first.arguments, second.arguments
    return left == right and isinstance(one, Number) and isinstance(other, Number) and one.value != other.value


def ways_through(names: set[str], evaluate: Callable[[Way], Any]) -> Iterator[tuple[Way, Any, str]]:
    """Every way through a kernel, whose operands and numbers are called `names`, with its value; None and why without."""
    pending: list[list[bool]] = [[]]
    count = 0
    while pending:
        decisions = pending.pop()
        way = Way(decisions, names=set(names))
        try:
            yield way, evaluate(way), ""
        except Unrenderable as problem:
            yield way, None, str(problem)
        pending += [[*way.taken[:i], False] for i in range(len(decisions), len(way.taken))]
        count += 1
        if count > _MOST_PATHS:
            raise Unrenderable("too many tests")


def find_variants(names: set[str], evaluate: Callable[[Way], Any]) -> list[Variant]:
    """The variants of a kernel: all ways through it."""
    variants: list[Variant] = []
    for way, result, problem in ways_through(names, lambda way: as_real(evaluate(way))):
        program, reason = None, problem
        if isinstance(result, Load) and result.name in names:
            reason = "nothing is computed"
        elif result is not None:
            program = Program(tuple(read_steps(way.steps, result, *way.beyond)), result)
        variants.append(Variant(list(way.conditions.items()), program, way.beyond, reason))
    if all(variant.program is None for variant in variants):
        raise Unrenderable(variants[0].reason)
    return variants


def as_real(value: Any) -> Expr:
    """A value as an element."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Operation("real", (Number(value),))
    kind = kind_of(value)
    if kind == REAL:
        return value
    if kind == NUMBER:
        return Operation("real", (value,))
    if kind == MASK:
        return Select(value, as_real(1), as_real(0))
    raise Unrenderable(f"{value!r} is not a number")


def needs_number(evaluate: Callable[[], list[Variant]]) -> list[Variant] | None:
    """The variants; None where an operand must be a Python number for a test to be decided."""
    try:
        return evaluate()
    except NeedsNumber:
        return None


def kind_of(value: Any) -> str | None:
    """The kind of an expression; None of what Python knows while reading."""
    if isinstance(value, (Load, Operation, Select)):
        return value.kind
    return value.load.kind if isinstance(value, Optional) else None
