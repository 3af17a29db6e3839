"""Attributes that users set on tensors, and settings that a function leaves changed: neither is lost or assumed."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.compiling.comparison import CALLS, skipped


def _catch(x: Any) -> Any:
    try:
        return x * x.scale
    except AttributeError:
        return -x


READERS: list[Any] = [
    lambda x: x * getattr(x, "scale", 7.0), lambda x: x * (2 if hasattr(x, "scale") else 3), _catch
]  # fmt: skip


@pytest.mark.parametrize("function", READERS)
@pytest.mark.parametrize("had_one", [False, True])
def test_attribute_that_an_argument_has_in_some_calls_is_asked_for_in_each(function: Any, had_one: bool) -> None:
    compiled = pullback.compile(function)
    for call in range(CALLS + 2):
        x: Any = pullback.ones(2)
        if had_one or call > 3:
            x.scale = 5.0 if call < CALLS else 6.0
        assert compiled(x).tolist() == function(x).tolist()


def test_attribute_of_a_tensor_from_outside_is_compared() -> None:
    weight: Any = pullback.ones(2)
    weight.scale = 2.0
    compiled = pullback.compile(lambda x: x * weight.scale)
    for call in range(CALLS + 3):
        if call == CALLS:
            weight.scale = 3.0
        assert compiled(pullback.ones(2)).tolist() == [weight.scale] * 2
    assert skipped(compiled) >= 2


def test_attribute_that_a_function_sets_is_there_after_each_call() -> None:
    def count(x: Any) -> Any:
        x.calls = x.calls + 1
        y = x * 2
        y.note = "doubled"
        return y

    compiled = pullback.compile(count)
    x: Any = pullback.ones(2)
    x.calls = 0
    assert [compiled(x).note for _ in range(CALLS)] == ["doubled"] * CALLS
    assert x.calls == CALLS


def test_attribute_of_an_intermediate_value_does_not_matter() -> None:
    def scale(x: Any) -> Any:
        y = x * 2
        y.scale = 3.0
        return y * y.scale

    compiled = pullback.compile(scale, fullgraph=True)
    assert [compiled(pullback.ones(1)).item() for _ in range(CALLS)] == [6.0] * CALLS


def test_grad_mode_and_default_dtype_are_left_as_eager_execution_leaves_them() -> None:
    def switch(x: Any) -> Any:
        y = x * 2
        pullback.set_grad_enabled(False)
        pullback.set_default_dtype(pullback.float64)
        return y + pullback.ones(2)

    compiled = pullback.compile(switch)
    for _ in range(CALLS):
        try:
            y = compiled(pullback.ones(2, requires_grad=True))
            assert (pullback.is_grad_enabled(), pullback.get_default_dtype()) == (False, pullback.float64)
            assert (y.dtype, y.requires_grad) == (pullback.float64, False)
        finally:
            pullback.set_grad_enabled(True)
            pullback.set_default_dtype(pullback.float32)


def test_number_that_turns_into_minus_zero_is_noticed() -> None:
    number = 0.0
    compiled = pullback.compile(lambda x: 1 / (x * number))
    for call in range(CALLS + 1):
        number = 0.0 if call < CALLS - 1 else -0.0
        expected = float("inf") if call < CALLS - 1 else -float("inf")
        assert compiled(pullback.ones(1)).item() == expected
