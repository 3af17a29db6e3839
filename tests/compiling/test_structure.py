"""What is taken apart among arguments and results: Note [Objects as containers]."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pytest

import pullback
from pullback.compiling.recorder import Recorder
from pullback.compiling.structure import flatten
from tests.compiling.comparison import skipped, weights

CALLS = 6


@dataclass(frozen=True)
class Batch:
    x: Any
    y: Any
    weight: float = 1.0


@dataclass
class Outcome:
    loss: Any
    parts: Any = None

    def doubled(self) -> Any:
        return self.loss * 2


@dataclass
class Named(Outcome):
    name: str = ""


def test_dataclasses_are_arguments_and_results() -> None:
    w = weights(3)

    def program(batch: Batch) -> Named:
        loss = ((batch.x * w - batch.y) ** 2).sum() * batch.weight
        return Named(loss, {"k": [batch.x + 1]}, "mean")

    compiled = pullback.compile(program)
    for call in range(CALLS):
        batch = Batch(pullback.full((3,), float(call)), pullback.ones(3))
        expected, actual = program(batch), compiled(batch)
        assert type(actual) is Named
        assert actual.name == "mean"
        assert actual.loss.item() == pytest.approx(expected.loss.item(), rel=1e-5)
        assert actual.parts["k"][0].tolist() == expected.parts["k"][0].tolist()
        assert actual.loss.requires_grad
    assert skipped(compiled) == CALLS - 2


def test_ordered_dictionary_is_a_result() -> None:
    compiled = pullback.compile(lambda x: OrderedDict(b=x * 2, a=x))
    for _ in range(CALLS):
        made = compiled(pullback.ones(2))
        assert type(made) is OrderedDict
        assert list(made) == ["b", "a"]
    assert skipped(compiled) == CALLS - 2


def test_attribute_that_is_set_on_an_argument_stays_set() -> None:
    def program(given: Outcome) -> Any:
        given.loss = given.doubled() + 1
        return given.loss.sum()

    compiled = pullback.compile(program)
    for call in range(12):
        given = Outcome(pullback.full((2,), float(call)))
        assert compiled(given).item() == 2 * (2 * call + 1)
        assert given.loss.tolist() == [2.0 * call + 1] * 2


def test_method_of_a_dataclass_that_is_replaced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pullback.compile(lambda given: given.doubled())
    for _ in range(CALLS):
        compiled(Outcome(pullback.ones(2)))
    monkeypatch.setattr(Outcome, "doubled", lambda self: self.loss * 3)
    assert compiled(Outcome(pullback.ones(2))).tolist() == [3.0, 3.0]


def test_dataclass_that_holds_a_model_is_an_object() -> None:
    leaves: list[Any] = []
    assert flatten(Outcome(pullback.ones(2), pullback.nn.Linear(1, 1)), leaves) is None
    assert len(leaves) == 1


def test_list_among_the_arguments_is_changed_beside_a_number_that_changes() -> None:
    def program(notes: list[int], x: Any, rate: float) -> Any:
        notes.append(1)
        return x * rate

    compiled = pullback.compile(program)
    for call in range(CALLS):
        notes: list[int] = []
        assert compiled(notes, pullback.ones(2), 1.5 + call).tolist() == [1.5 + call] * 2
        assert notes == [1]


def test_number_that_item_gave_does_not_hold_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    recorders: list[Any] = []
    original = Recorder.__init__

    def init(self: Any, *args: Any) -> None:
        original(self, *args)
        recorders.append(weakref.ref(self))

    monkeypatch.setattr(Recorder, "__init__", init)
    kept: list[float] = []

    def program(x: Any) -> Any:
        kept.append((x * 2).sum().item())
        return x + 1

    pullback.compile(program)(pullback.ones(3))
    gc.collect()
    assert kept == [6.0]
    assert [recorder() for recorder in recorders] == [None]
