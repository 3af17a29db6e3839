"""Numbers that a recorded call follows are Python's own where they outlive it."""

from __future__ import annotations

import pickle
from collections import deque, namedtuple
from typing import Any

import pytest

import pullback

Pair = namedtuple("Pair", "first second")


class Holder:
    __slots__ = ("slot",)
    slot: Any


class State:
    def __init__(self) -> None:
        self.count = 0
        self.items: list[Any] = []
        self.table: dict[Any, Any] = {}
        self.queue: deque[Any] = deque(maxlen=4)
        self.inner: Any = None


def kinds_of(value: Any) -> set[type]:
    """The types of all numbers in a value."""
    if isinstance(value, (int, float)):
        return {type(value)}
    if isinstance(value, dict):
        return kinds_of([*value, *value.values()])
    if isinstance(value, (list, tuple, set, deque)):
        return {kind for part in value for kind in kinds_of(part)}
    if isinstance(value, Holder):
        return kinds_of(value.slot)
    return kinds_of(vars(value)) if isinstance(value, State) else set()


def keep(state: State, n: Any) -> None:
    state.count = state.count + n
    state.items.append(n)
    state.items.append((n, [n], Pair(n, {n: n})))
    state.table[n] = {"n": n}
    state.queue.append({n})
    state.inner = Holder()
    state.inner.slot = n * 2


@pytest.mark.parametrize("kind", ["size", "item", "argument"])
def test_numbers_that_a_function_keeps_are_pythons_own(kind: str) -> None:
    state = State()

    def call(x: Any, number: Any) -> Any:
        keep(state, {"size": x.shape[0], "item": x.sum().item(), "argument": number}[kind])
        return x * 2

    compiled = pullback.compile(call)
    for n in (2, 2, 3, 4, 5, 2):
        compiled(pullback.ones(n), float(n))
    assert kinds_of(state) <= {int, float}
    assert pickle.loads(pickle.dumps(state.items)) == state.items


def test_numbers_are_pythons_own_in_globals_arguments_and_results() -> None:
    names: dict[str, Any] = {}
    exec(
        "n = 0\ndef call(x, seen):\n    global n\n    n = x.shape[0]\n    seen.append(n)\n    return [n, {'n': (n, x.shape)}]\n",
        names,
    )
    compiled = pullback.compile(names["call"])
    seen: list[Any] = []
    for size in (2, 2, 3, 4, 2):
        result = compiled(pullback.ones(size), seen)
        assert kinds_of(result) | kinds_of(names["n"]) | kinds_of(seen) == {int}


def test_numbers_are_pythons_own_in_an_object_that_is_returned() -> None:
    def call(x: Any) -> Any:
        state = State()
        keep(state, x.shape[0])
        return state

    compiled = pullback.compile(call)
    assert all(kinds_of(compiled(pullback.ones(n))) == {int} for n in (2, 2, 3, 2))


def test_numbers_are_pythons_own_after_an_error() -> None:
    state = State()

    def call(x: Any) -> Any:
        keep(state, x.shape[0])
        raise ValueError("no")

    compiled = pullback.compile(call)
    for n in (2, 3, 2):
        with pytest.raises(ValueError, match="no"):
            compiled(pullback.ones(n))
    assert kinds_of(state) == {int}
