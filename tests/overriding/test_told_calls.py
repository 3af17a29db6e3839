"""`__torch_function__` is told what PyTorch tells, of a class and of a mode: function, name, types and arguments."""

from __future__ import annotations

import json

import pullback
from pullback.backend.configuration import compiled_modules
from tests.cases import each_case, named
from tests.overriding.differing import (
    DIFFERING,
    DIFFERING_IN_MODES,
    DIFFERING_IN_MODES_WHERE_COMPILED,
    DIFFERING_WHERE_COMPILED,
)
from tests.overriding.expressions import told, told_to_mode
from tests.overriding.record import RECORDED, RECORDED_IN_MODES

IS_COMPILED = "pullback.tensor.tensor_base" in compiled_modules()

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))
EXPECTED_IN_MODES = json.loads(RECORDED_IN_MODES.read_text(encoding="utf-8"))


@each_case(named("call", EXPECTED), DIFFERING | (DIFFERING_WHERE_COMPILED if IS_COMPILED else {}))
def test_a_subclass_is_told_what_pytorch_tells(call: str) -> None:
    assert told(pullback, call) == EXPECTED[call]


def test_reasons_are_given_for_calls_that_are_looked_at() -> None:
    assert DIFFERING.keys() <= EXPECTED.keys()


@each_case(
    named("call", EXPECTED_IN_MODES),
    DIFFERING_IN_MODES | (DIFFERING_IN_MODES_WHERE_COMPILED if IS_COMPILED else {}),
)
def test_a_mode_is_told_what_pytorch_tells(call: str) -> None:
    assert json.loads(json.dumps(told_to_mode(pullback, call))) == EXPECTED_IN_MODES[call]


def test_reasons_are_given_for_calls_in_modes_that_are_looked_at() -> None:
    assert DIFFERING_IN_MODES.keys() <= EXPECTED_IN_MODES.keys()
