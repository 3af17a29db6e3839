"""explain and check: what a program consists of, and whether it is right."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import pullback
from pullback import nn
from tests.compiling.comparison import CALLS, skipped, weights


def test_explain_tells_kernels_and_what_is_kept() -> None:
    text = str(pullback.compiler.explain(lambda x: x.sin().exp().sum())(weights(2)))
    assert "One program" in text
    assert "trigonometric.sin" in text
    assert "Kept for backward" in text


def test_explain_tells_what_keeps_a_function_eager() -> None:
    def choose(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    explanation = pullback.compiler.explain(choose)(pullback.ones(2))
    assert explanation.graph_break_count == 1
    assert "decides a branch" in str(explanation)
    assert "test_explain.py" in str(explanation)


def test_check_passes_where_a_program_is_right() -> None:
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    twin = copy.deepcopy(layer)
    compiled = pullback.compile(lambda x: layer(x).exp(), check=True)
    for call in range(CALLS):
        pullback.manual_seed(call)
        actual, after = compiled(weights(4, 3, seed=call)), pullback.rand(1)
        pullback.manual_seed(call)
        expected = twin(weights(4, 3, seed=call)).exp()
        assert pullback.equal(actual, expected)
        assert pullback.equal(after, pullback.rand(1))
    assert pullback.equal(layer[2].running_var, twin[2].running_var)
    assert skipped(compiled) == 2


def test_check_names_the_first_operation_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.compiling import compiled_function
    from pullback.compiling.program import Program, Runner, replay

    def build_wrongly(program: Program) -> Runner:
        for call in program.calls:
            if call.kernel == "trigonometric.cos":
                call.function = lambda x: x * 2
        return replay(program)

    def function(x: Any) -> Any:
        y = x.sin()
        y = y.cos()
        return y.exp()

    compiled = pullback.compile(function, check=True)
    monkeypatch.setattr(compiled_function, "build", build_wrongly)
    compiled(pullback.ones(2))
    compiled(pullback.ones(2))
    with pytest.raises(RuntimeError, match=r"in trigonometric.cos at .*y = y.cos\(\)"):
        compiled(pullback.ones(2))
