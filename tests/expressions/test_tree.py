"""Expressions as values: equality, what is asked of their nodes, substitution and fusion."""

from __future__ import annotations

import pytest

from pullback.expressions.c_printer import print_c, print_steps
from pullback.expressions.functions import FUNCTIONS, NUMPY_NAMES
from pullback.expressions.tree import (
    MASK,
    NUMBER,
    Expr,
    Load,
    Number,
    Operation,
    Program,
    Select,
    Step,
    called,
    fuse,
    is_costly,
    is_exact,
    is_in_float32_alone,
    loads,
    read_steps,
    substitute,
)

x, y, k = Load("x"), Load("y"), Load("k", NUMBER)
ONE = Operation("real", (Number(1),))


def of(name: str, *arguments: Expr) -> Operation:
    return Operation(name, arguments)


def test_steps_that_nothing_reads_are_left_out() -> None:
    first, second = Step("first", of("+", x, ONE)), Step("second", of("*", Load("first"), y))
    unread = Step("unread", of("*", Load("second"), y))
    assert read_steps([first, second, unread], of("-", Load("second"), x)) == [first, second]
    assert read_steps([first, second, unread], x) == []


def test_equal_trees_are_equal_and_can_be_keys() -> None:
    assert {of("+", x, ONE): "first"}[of("+", Load("x"), Operation("real", (Number(1),)))] == "first"
    assert of("+", x, y) != of("+", y, x)


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (1, 1.0)])
def test_numbers_that_are_written_differently_are_different(first: float, second: float) -> None:
    assert Number(first) != Number(second)


def test_nan_is_itself() -> None:
    assert Number(float("nan")) == Number(float("nan"))


def test_what_is_read_and_called() -> None:
    tree = Select(Operation(">", (x, ONE), MASK), of("exp", y), of("abs", x))
    assert loads(tree) == {"x", "y"}
    assert called(tree) == {"exp", "abs"}


def test_cost_is_a_fact_of_the_functions_that_are_called() -> None:
    assert is_costly(of("*", x, of("exp", y)))
    assert not is_costly(of("*", x, of("abs", y)))
    # A function of the call's own number is computed once, whatever it costs.
    assert not is_costly(of("*", x, of("real", Operation("log", (k,), NUMBER))))


def test_some_functions_are_there_for_float32_alone() -> None:
    assert is_in_float32_alone(of("tan", x))
    assert not is_in_float32_alone(of("sin", x))


def test_choosing_is_exact_and_adding_is_not() -> None:
    assert is_exact(Select(Operation(">", (x, y), MASK), of("neg", x), of("maximum", x, y)))
    assert not is_exact(of("maximum", x, of("+", x, y)))


def test_substitution_reaches_every_part() -> None:
    tree = Select(Operation(">", (x, ONE), MASK), of("exp", x), y)
    assert print_c(substitute(tree, {"x": of("*", y, y)})) == "(((y * y) > (REAL)1) ? exp_of((y * y)) : y)"


def test_a_result_that_is_read_once_is_put_where_it_is_read() -> None:
    fused = fuse(Program((), of("*", x, y)), "input", Program((), of("exp", Load("input"))))
    assert fused == Program((), of("exp", of("*", x, y)))


def test_a_result_that_is_read_twice_is_computed_once() -> None:
    input = Load("input")
    fused = fuse(Program((), of("*", x, y)), "input", Program((), of("*", input, input)))
    assert print_steps(fused) == ["const REAL input = (x * y);"]
    assert print_c(fused.result) == "(input * input)"


def test_steps_of_the_same_name_are_kept_apart() -> None:
    before = Program((Step("e", of("exp", x)),), of("/", Load("e"), of("+", Load("e"), ONE)))
    after = Program((Step("e", of("log", Load("z"))),), of("*", Load("e"), Load("e")))
    fused = fuse(before, "z", after)
    assert [step.name for step in fused.steps] == ["e", "e_2"]
    assert print_c(fused.result) == "(e_2 * e_2)"


def test_every_function_is_known_by_its_own_name() -> None:
    assert all(FUNCTIONS[name].name == name for name in FUNCTIONS)
    assert set(NUMPY_NAMES.values()) <= FUNCTIONS.keys()
