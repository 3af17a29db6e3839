"""Recorded random programs do on pullback what they did on PyTorch; the parts of the fuzzer notice what they are to."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pullback
from tests.fuzz import RECORDED
from tests.fuzz.accepted import is_accepted
from tests.fuzz.comparison import Difference, first_difference
from tests.fuzz.execution import Step, run
from tests.fuzz.shrinking import shrink

PROGRAMS = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_recorded_program_does_what_it_did_on_pytorch(program: dict[str, Any]) -> None:
    expected = [Step(step["raised"], "", step["state"]) for step in program["steps"]]
    actual = run(pullback, program["statements"], look_always=True)

    assert first_difference(program["statements"], expected, actual, is_accepted) is None


def test_a_wrong_version_is_a_difference() -> None:
    program = ["a = torch.ones(2)", "a.mul_(2)"]
    expected = run(pullback, program, look_always=True)
    expected[1].state["a"]["version"] = 2

    difference = first_difference(program, expected, run(pullback, program, look_always=True))

    assert difference == Difference(1, "a.mul_(2)", "version of a", 2, 1, "float32")


def test_a_missing_exception_is_a_difference() -> None:
    program = ["a = torch.ones(2)"]
    actual = run(pullback, program, look_always=True)

    difference = first_difference(program, [Step(["RuntimeError"], "no")], actual)

    assert difference is not None
    assert difference.field == "exception"


def test_values_are_compared_with_a_tolerance() -> None:
    program = ["a = torch.ones(2)"]
    actual = run(pullback, program, look_always=True)
    close, far = run(pullback, program, look_always=True), run(pullback, program, look_always=True)
    close[0].state["a"]["values"] = [1.0, 1.00001]
    far[0].state["a"]["values"] = [1.0, 1.1]

    assert first_difference(program, close, actual) is None
    assert first_difference(program, far, actual) is not None


def test_statements_that_do_not_matter_are_left_out() -> None:
    program = ["a = torch.ones(2)", "b = a + 1", "c = a * 2", "c.neg_()"]

    def examine(statements: Any) -> Difference | None:
        last = len(statements) - 1
        kept = "c = a * 2" in statements and statements[last] == "c.neg_()"
        return Difference(last, "c.neg_()", "version of c", 0, 1) if kept else None

    found = examine(program)
    assert found is not None
    shorter, _ = shrink(program, found, examine)

    assert shorter == ["c = a * 2", "c.neg_()"]


def test_integers_with_grad_are_noted_where_nobody_looked() -> None:
    program = ["a = torch.ones(2)", "a.mul_(2)"]
    expected, actual = run(pullback, program, look_always=False), run(pullback, program, look_always=False)
    expected[0].integers_with_grad = True
    expected[1].state["a"]["requires_grad"] = True

    difference = first_difference(program, expected, actual)

    assert difference is not None
    assert difference.integers_with_grad
