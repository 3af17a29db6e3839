"""Guards that are written as one expression notice what those that ask each place notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.compiling.compiled_function import CompiledFunction

SCALE = 2.0


class State:
    """What a function without arguments depends on."""

    def __init__(self) -> None:
        self.tensor = pullback.full((2,), 3.0)
        self.numbers = [1.0, 2.0]
        self.named = {"shift": 1.0}
        self.empty: dict[str, float] = {}


CHANGES: dict[str, Callable[[State], Any]] = {
    "a tensor that is replaced": lambda s: setattr(s, "tensor", pullback.full((2,), 4.0)),
    "memory that is replaced": lambda s: setattr(s.tensor, "data", pullback.full((2,), 4.0)),
    "values that are written": lambda s: s.tensor.add_(1),
    "a number in a list": lambda s: s.numbers.__setitem__(1, 5.0),
    "a list that grows": lambda s: s.numbers.append(5.0),
    "a number in a dictionary": lambda s: s.named.__setitem__("shift", 7.0),
    "a key that is added": lambda s: s.named.__setitem__("more", 7.0),
    "an empty dictionary that is filled": lambda s: s.empty.__setitem__("more", 7.0),
    "a tensor that requires grad": lambda s: s.tensor.requires_grad_(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_changes_is_noticed_after_many_calls(change: Callable[[State], Any]) -> None:
    state = State()

    def function() -> Any:
        return state.tensor * sum(state.numbers) + sum(state.named.values()) + len(state.empty) + SCALE

    compiled = pullback.compile(function)
    for _ in range(6):
        assert compiled().tolist() == [12.0, 12.0]
    assert _is_quick(compiled)
    change(state)
    for _ in range(6):
        assert compiled().tolist() == function().tolist()
        assert compiled().requires_grad == function().requires_grad


def test_memory_that_is_exchanged_to_and_fro_is_read_anew() -> None:
    weight = pullback.ones(2)
    memories = [pullback.full((2,), float(n)) for n in range(2)]
    compiled = pullback.compile(lambda: weight * 2)
    for turn in range(12):
        weight.data = memories[turn // 5 % 2]
        assert compiled().tolist() == [turn // 5 % 2 * 2.0] * 2


def test_global_and_code_that_change_are_noticed() -> None:
    global SCALE
    x = pullback.ones(2)

    def function() -> Any:
        return x * SCALE

    compiled = pullback.compile(function)
    for _ in range(6):
        assert compiled().tolist() == [2.0, 2.0]
    SCALE = 5.0
    assert compiled().tolist() == [5.0, 5.0]
    SCALE = 2.0

    def replacement() -> Any:
        return x * SCALE + 1

    function.__code__ = replacement.__code__
    assert compiled().tolist() == [3.0, 3.0]


def test_global_that_is_gone_raises_what_eager_raises() -> None:
    scope: dict[str, Any] = {"torch": pullback, "factor": 2.0}
    exec("def function():\n    return torch.ones(2) * factor", scope)
    compiled = pullback.compile(scope["function"])
    for _ in range(6):
        compiled()
    del scope["factor"]
    with pytest.raises(NameError, match="factor"):
        compiled()


def test_hook_and_grad_that_come_later_are_noticed() -> None:
    weight = pullback.ones(2, requires_grad=True)

    def function() -> Any:
        (weight * 3).sum().backward()
        return weight.grad

    def fresh(call: Callable[[], Any]) -> list[float]:
        weight.grad = None
        found: list[float] = call().tolist()
        return found

    compiled = pullback.compile(function)
    for _ in range(6):
        assert fresh(compiled) == [3.0, 3.0]
    assert compiled().tolist() == [6.0, 6.0]
    seen: list[Any] = []
    weight.register_hook(lambda grad: seen.append(grad.tolist()))
    assert fresh(compiled) == [3.0, 3.0]
    assert seen == [[3.0, 3.0]]


def _is_quick(compiled: Any) -> bool:
    assert isinstance(compiled, CompiledFunction)
    return any(entry._matching._quick is not None for kind in compiled.kinds.values() for entry in kind.entries)
