"""Tensors of globals, closures and attributes that give way to others: Note [Replaced tensors]."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pullback
from tests.compiling.comparison import assert_close, skipped, weights
from tests.compiling.test_segments import skipped_pieces

CALLS = 6


def _full(value: float, *, requires_grad: bool = False) -> Any:
    return pullback.full((3,), float(value), requires_grad=requires_grad)


def test_another_tensor_of_the_same_form_is_an_input() -> None:
    held = {"batch": _full(0.0)}
    compiled = pullback.compile(lambda: held["batch"] * 2)
    for call in range(CALLS):
        held["batch"] = _full(call)
        assert compiled().tolist() == [2.0 * call] * 3
    assert skipped(compiled) == CALLS - 2


def test_replaced_tensors_get_gradients() -> None:
    held = SimpleNamespace(w=weights(3))
    compiled = pullback.compile(lambda x: (held.w * x).sum())
    for call in range(CALLS):
        held.w = _full(call, requires_grad=True)
        compiled(_full(call + 1)).backward()
        assert held.w.grad.tolist() == [call + 1.0] * 3
    assert skipped(compiled) == CALLS - 2


def test_two_tensors_that_change_places_are_told_apart() -> None:
    u, v = _full(1.0), _full(2.0)
    compiled = pullback.compile(lambda: u - 3 * v)
    for _ in range(CALLS):
        u, v = v, u
        assert compiled().tolist() == (u - 3 * v).tolist()
    assert skipped(compiled) == CALLS - 2


def test_one_tensor_in_two_places_is_not_two_tensors() -> None:
    u, v = _full(1.0), _full(2.0)

    def program() -> Any:
        u.add_(1)
        return u * v

    compiled = pullback.compile(program)
    for _ in range(CALLS):
        u, v = _full(1.0), _full(2.0)
        assert compiled().tolist() == [4.0] * 3
    v = u = _full(1.0)
    assert compiled().tolist() == [4.0] * 3
    assert u.tolist() == [2.0] * 3


def test_another_form_is_recorded_anew() -> None:
    held = {"x": _full(1.0)}
    compiled = pullback.compile(lambda: held["x"] * 2)
    for _ in range(CALLS):
        compiled()
    held["x"] = pullback.ones(2, dtype=pullback.float64)
    assert compiled().dtype is pullback.float64
    held["x"] = _full(3.0, requires_grad=True)
    assert compiled().requires_grad


def test_what_was_replaced_back_is_seen() -> None:
    first, second = _full(1.0), _full(2.0)
    held = {"x": first}
    compiled = pullback.compile(lambda: held["x"] * 1)
    for _ in range(20):  # until all is compared at once
        compiled()
    for tensor, value in ((second, 2.0), (first, 1.0), (second, 2.0)):
        held["x"] = tensor
        assert compiled().tolist() == [value] * 3


def test_tensors_of_a_set_are_not_taken_for_each_other() -> None:
    held = {_full(1.0)}
    compiled = pullback.compile(lambda: sum(held))
    for call in range(CALLS):
        held.clear()
        held.update([_full(call), _full(2.0 * call)])
        assert compiled().tolist() == [3.0 * call] * 3


def test_argument_that_was_found_in_the_surroundings_is_not_taken_for_what_is_there() -> None:
    held = _full(2.0)
    compiled = pullback.compile(lambda x: x * held)
    for _ in range(4):
        assert compiled(held).tolist() == [4.0] * 3
    assert compiled(_full(10.0)).tolist() == [20.0] * 3


def test_argument_that_is_compared_with_a_tensor_of_the_surroundings_is_told_apart() -> None:
    held = SimpleNamespace(first=_full(1.0), second=_full(2.0))

    def program(x: Any) -> Any:
        return x * held.first - (x is held.second) * held.second

    compiled = pullback.compile(program)
    for x in [_full(3.0)] * 4 + [held.second] * 4 + [held.first, _full(3.0)]:
        assert compiled(x).tolist() == program(x).tolist()


class Agent:
    """Carries a state on, as a recurrent policy does."""

    def __init__(self) -> None:
        self.state = pullback.zeros(3)
        self.weight = weights(3)

    def step(self, x: Any) -> Any:
        self.state = pullback.tanh(self.state * self.weight + x)
        return self.state.sum()


def test_state_that_a_method_carries_on_is_compiled() -> None:
    eager, agent = Agent(), Agent()
    compiled = pullback.compile(agent.step)
    for call in range(12):
        x = pullback.full((3,), 0.1 * call)
        expected, actual = eager.step(x), compiled(x)
        expected.backward()
        actual.backward()
        assert_close(actual, expected)
        eager.state, agent.state = eager.state.detach(), agent.state.detach()
    assert_close(agent.weight.grad, eager.weight.grad)
    assert sum(skipped_pieces(compiled)) > 0
