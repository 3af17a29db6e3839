"""`compiler.set_stance`: whether compiled functions compile, run as they are, or refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pullback
from pullback.compiling.stances import Stance


@pytest.fixture(autouse=True)
def _default() -> Iterator[None]:
    yield
    assert Stance.other is None
    Stance.other = None


def _compiled() -> Any:
    compiled = pullback.compile(lambda x: x * 2)
    for _ in range(4):
        compiled(pullback.ones(2))
    return compiled


def test_forced_eager_runs_the_function_itself() -> None:
    compiled = _compiled()
    x = pullback.ones(2, requires_grad=True)
    with pullback.compiler.set_stance("force_eager"):
        assert compiled(x).grad_fn.name() == "MulBackward0"
    assert compiled(x).grad_fn.name() == "CompiledFunctionBackward"


def test_no_new_program_is_made_where_that_is_asked() -> None:
    compiled = _compiled()
    runs, kinds = compiled.runs, len(compiled.kinds)
    with pullback.compiler.set_stance("eager_on_recompile"):
        compiled(pullback.ones(2))
        for _ in range(4):
            assert compiled(pullback.ones(3)).tolist() == [2.0] * 3
    assert (compiled.runs, len(compiled.kinds)) == (runs + 1, kinds)


def test_compiling_anew_is_refused_with_the_place_of_the_function() -> None:
    compiled = _compiled()

    @pullback.compiler.set_stance("fail_on_recompile")
    def call(x: Any) -> Any:
        return compiled(x)

    assert call(pullback.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=r"Detected recompile.*fail_on_recompile.*test_stances.py"):
        call(pullback.ones(2, dtype=pullback.float64))
    assert compiled(pullback.ones(2, dtype=pullback.float64)).tolist() == [2.0, 2.0]


def test_stance_lasts_until_it_is_changed_and_wrong_ones_are_refused() -> None:
    compiled = _compiled()
    runs = compiled.runs
    pullback.compiler.set_stance("force_eager")
    compiled(pullback.ones(2))
    pullback.compiler.set_stance("default")
    assert compiled.runs == runs
    with pytest.raises(RuntimeError, match="invalid torch\\.compile stance"):
        pullback.compiler.set_stance("other")
    with pytest.raises(RuntimeError, match="cannot have force_backend"):
        pullback.compiler.set_stance("force_eager", force_backend="eager")
