"""Numbers among the arguments that change from call to call: inputs of one program where that is sound."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling import compiled_function
from pullback.compiling.numbers import Numbers, evaluate

F = nn.functional
VALUES = [0.1 * number for number in range(1, 11)]


def compare(function: Any, values: list[Any], **options: Any) -> Any:
    """Results and gradients are those of eager execution for all values; gives the compiled function."""
    compiled = pullback.compile(function, **options)
    for value in values:
        seen = []
        for run in (function, compiled):
            x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
            result = run(x, value)
            tensor, *others = result if isinstance(result, tuple) else (result,)
            tensor.sum().backward()
            seen.append((tensor.detach(), x.grad, others))
        pullback.testing.assert_close(seen[1][0], seen[0][0], rtol=2e-5, atol=2e-6)
        pullback.testing.assert_close(seen[1][1], seen[0][1], rtol=2e-5, atol=2e-6)
        assert seen[1][2] == seen[0][2]
        assert all(type(other) is float for other in seen[1][2] if isinstance(other, float))
    return compiled


def set_item(x: Any, a: float) -> Any:
    y = x * 1
    y[0] = a
    return y


FOLLOWED: list[Any] = [
    lambda x, a: x * a, lambda x, a: x * (2 * a + 1) / a - a, lambda x, a: (x + a).exp(), lambda x, a: a - x, lambda x, a: x**a,
    lambda x, a: F.leaky_relu(x - 2, a), lambda x, a: x.clamp(min=a), lambda x, a: pullback.full((3,), a) * x, set_item,
    lambda x, a: (x * a, a, -a * 2), lambda x, a: x * max(a, -1.0), lambda x, a: x.lerp(x * x, a),
    lambda x, a: x * pullback.tensor([a, 2 * a, 1.0]),
]  # fmt: skip


@pytest.mark.parametrize("function", FOLLOWED)
def test_number_that_changes_is_an_input_of_one_program(function: Any) -> None:
    compiled = compare(function, VALUES)
    assert len(compiled.kinds) == 1
    assert compiled.runs == len(VALUES) - 3


READ: list[Any] = [
    lambda x, a: x * math.sqrt(a), lambda x, a: (x * a, f"{a:.2f}"), lambda x, a: x * int(a * 10), lambda x, a: x * round(a, 1),
    lambda x, a: x * [1.0, 2.0][hash(a) % 2], lambda x, a: x * float(a),
    lambda x, a: x * len("%.3f" % a + "%.1f" % (a * 20)),  # noqa: UP031  # it reads the number without asking
]  # fmt: skip


@pytest.mark.parametrize("function", READ)
def test_number_whose_value_python_uses_is_told_apart_by_it(function: Any) -> None:
    compiled = compare(function, VALUES)
    assert len(compiled.kinds) == len(VALUES) - 1
    compare(function, [0.5] * 4 + [0.7] * 4 + [0.5, 0.7])


def test_branch_on_a_number_is_a_condition_of_the_program() -> None:
    compiled = compare(lambda x, a: x * a if a > 0.45 else x - a, [*VALUES, *VALUES])
    assert len(compiled.kinds) == 1
    assert compiled.runs >= 15


def test_number_of_zero_or_infinity_or_nan_gives_what_eager_gives() -> None:
    compiled = pullback.compile(lambda x, a: x * a + x**a)
    x = pullback.tensor([0.0, 1.0, 2.0])
    for value in [1.0, 2.0, 3.0, 0.0, -0.0, math.inf, math.nan, 0.5, 2.0]:
        assert str(compiled(x, value)) == str(x * value + x**value)


def test_dynamic_false_compiles_for_each_value_and_true_for_none() -> None:
    assert len(compare(lambda x, a: x * a, VALUES, dynamic=False).kinds) == len(VALUES)
    compiled = compare(lambda x, a: x * a, VALUES, dynamic=True)
    assert (len(compiled.kinds), compiled.runs) == (1, len(VALUES) - 2)


def test_number_inside_of_a_list_is_told_apart_and_the_list_stays() -> None:
    def function(x: Any, numbers: list[float]) -> Any:
        numbers.append(1.0)
        return x * numbers[0]

    compiled = pullback.compile(function)
    for value in VALUES:
        given = [value]
        assert compiled(pullback.ones(1), given).item() == pytest.approx(value)
        assert given == [value, 1.0]


def test_number_between_two_segments_is_an_input_of_the_next() -> None:
    def function(x: Any, a: float) -> Any:
        y = x * a
        norm = y.detach().norm().item()
        z = y / norm
        return (z * z).sum() * a

    compiled = compare(function, [*VALUES, *VALUES])
    assert compiled.segments is not None
    last = compiled.segments.pieces[-1]
    assert len(last.kinds) == 1
    assert last.runs >= 10


def test_too_many_kinds_of_arguments_are_told_once_and_run_eagerly() -> None:
    compiled = pullback.compile(lambda x, count: x * len(range(count)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for count in range(compiled_function.KINDS + 5):
            assert compiled(pullback.ones(2), count).tolist() == [count, count]
    assert [str(w.message)[:35] for w in caught] == ["torch.compile hit recompile_limit ("]
    assert len(compiled.kinds) == compiled_function.KINDS


def test_flag_outside_that_goes_to_and_fro_has_a_program_for_each_value() -> None:
    global FLAG
    compiled = pullback.compile(lambda x: x * 2 if FLAG else x * 3)
    for call in range(12):
        FLAG = call % 2 == 0
        assert compiled(pullback.ones(1)).item() == (2.0 if FLAG else 3.0)
    assert compiled.runs == 8


FLAG = True


def test_expression_is_computed_anew_and_conditions_hold_or_not() -> None:
    numbers = Numbers()
    a = numbers.trace(2.0, [0])
    made: Any = 1 - a * a
    assert made == -3.0
    assert evaluate(made._expression, [3.0]) == -8.0
    assert numbers.conditions[0].holds([2.0])
    assert not numbers.conditions[0].holds([3.0])
    assert not numbers.is_read


@pytest.mark.parametrize("function", [lambda x, rate: None * rate, lambda x, rate: None * x.sum().item()])
@pytest.mark.parametrize("rates", [(0.5, 1.5), (2, 3)])
def test_error_about_a_number_names_its_type_as_in_eager_execution(function: Any, rates: Any) -> None:
    compiled = pullback.compile(function)
    for rate in rates:
        with pytest.raises(TypeError) as expected:
            function(pullback.ones(2), rate)
        with pytest.raises(TypeError) as actual:
            compiled(pullback.ones(2), rate)
        assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize(
    "others",
    [(True, 1.5, False), (None, 2.0, None), ("text", 3, "text"), ([1], 2)],
    ids=["bool", "None", "text", "list"],
)
@pytest.mark.parametrize("first", [(1, 2, 3), (1.0, 2.0, 3.0)], ids=["int", "float"])
def test_argument_that_was_a_changing_number_may_be_something_else(first: Any, others: Any) -> None:
    def scale(x: Any, factor: Any) -> Any:
        return x * factor if isinstance(factor, (int, float)) else x

    compiled = pullback.compile(scale)
    x = pullback.ones(2, dtype=pullback.int64)
    for factor in [*first, *others, *others]:
        pullback.testing.assert_close(compiled(x, factor), scale(x, factor), rtol=0, atol=0)
