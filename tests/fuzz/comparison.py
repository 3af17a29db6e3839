"""Compares what two libraries did with one program, and finds the first difference."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

from tests.fuzz.execution import Step

TOLERANCE = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 2e-4, "complex64": 2e-4}


@dataclass(frozen=True)
class Difference:
    """Where two runs of a program differ first: the statement, what differs there, and both sides."""

    number: int
    statement: str
    field: str
    expected: Any
    actual: Any
    dtype: str = ""
    before: str = dataclass_field(default="", compare=False)
    """The statements up to this one."""
    integers_with_grad: bool = dataclass_field(default=False, compare=False)
    """Whether PyTorch has an integer tensor by now that requires grad."""

    @property
    def kind(self) -> tuple[str, str]:
        """What programs with the same cause have in common: the field and the form of the statement."""
        return self.field.partition(" of ")[0], form_of(self.statement)


def form_of(statement: str) -> str:
    """The statement without the names and numbers in it."""
    return re.sub(r"\b[a-z]\d*\b", "_", re.sub(r"-?\d+(\.\d*)?", "1", statement))


def first_difference(
    statements: Sequence[str],
    expected: Sequence[Step],
    actual: Sequence[Step],
    stands: Callable[[Difference], bool] = lambda difference: False,
) -> Difference | None:
    """The first difference between what was expected and what happened, but for those that stand; None without one."""
    passed: set[tuple[str, str]] = set()
    integers = False
    for number, (theirs, ours) in enumerate(zip(expected, actual, strict=True)):
        statement, before = statements[number], "\n".join(statements[: number + 1])
        integers = integers or theirs.integers_with_grad
        if not same_exception(theirs.raised, ours.raised):
            difference = Difference(
                number, statement, "exception", _shown(theirs), _shown(ours), "", before, integers_with_grad=integers
            )
            return None if stands(difference) else difference
        if theirs.raised:
            return None  # what a refused statement left behind is not defined
        for name, seen in theirs.state.items():
            for difference in _differences(number, before, name, seen, ours.state.get(name, {})):
                difference = replace(difference, statement=statement, before=before, integers_with_grad=integers)
                place = (name, difference.field)
                if place in passed:
                    continue
                if not stands(difference):
                    return difference
                passed.add(place)
        if ours.state.keys() != theirs.state.keys():
            return Difference(number, statement, "names", list(theirs.state), list(ours.state))
    return None


def _differences(
    number: int, before: str, name: str, seen: dict[str, Any], mine: dict[str, Any]
) -> Iterator[Difference]:
    """How what is seen of one tensor differs, field by field, and then of its gradient."""
    seen, mine = _without_idle_strides(seen), _without_idle_strides(mine)
    dtype = seen["dtype"]
    for field, value in seen.items():
        other = mine.get(field)
        if 0 in seen["shape"] and field in ("stride", "offset"):
            continue  # an empty tensor lies nowhere
        if field == "grad" and isinstance(value, dict) and isinstance(other, dict):
            for part in _differences(number, before, f"{name}.grad", value, other):
                yield Difference(number, "", f"grad.{part.field}", part.expected, part.actual, dtype)
        elif not _same(field, value, other, tolerance_of(dtype, before)):
            yield Difference(number, "", f"{field} of {name}", value, other, dtype)


def _shown(step: Step) -> str:
    return f"{step.raised[0]}: {step.message[:160]}" if step.raised else "nothing raised"


def same_exception(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether nothing was raised by both, or an exception that is one of the expected class."""
    return bool(expected) == bool(actual) and (not expected or expected[0] in actual)


def tolerance_of(dtype: str, before: str) -> float:
    """How far values may be apart: as far as in the narrowest dtype that the program has computed with."""
    narrow = [value for name, value in TOLERANCE.items() if f"torch.{name}" in before and "float16" in name]
    return max([TOLERANCE.get(dtype, 1e-6), *narrow])


def _same(field: str, expected: Any, actual: Any, tolerance: float) -> bool:
    if field == "values" and isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(
            is_close(e, a, tolerance) for e, a in zip(expected, actual, strict=True)
        )
    return bool(expected == actual)


def _without_idle_strides(seen: dict[str, Any]) -> dict[str, Any]:
    """The same with zeros for the steps of dimensions with one element, which are never taken."""
    stride, shape = seen.get("stride"), seen.get("shape")
    if not isinstance(stride, list) or not isinstance(shape, list):
        return seen
    return {**seen, "stride": [step if size != 1 else 0 for step, size in zip(stride, shape, strict=True)]}


def is_close(expected: Any, actual: Any, tolerance: float) -> bool:
    """Whether two values, or lists of them, differ by no more than rounding errors."""
    if isinstance(expected, list):
        return all(is_close(e, a, tolerance) for e, a in zip(expected, actual, strict=True))
    if isinstance(expected, float) and isinstance(actual, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        return expected == actual or abs(expected - actual) <= tolerance * (1 + abs(expected))
    return bool(expected == actual)
