"""`__torch_function__` is told what PyTorch tells: the function, its name, how many arguments and which keywords."""

from __future__ import annotations

import json

import pytest

import pullback
from tests.overriding.differing import DIFFERING
from tests.overriding.expressions import told
from tests.overriding.record import RECORDED

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", EXPECTED)
def test_a_subclass_is_told_what_pytorch_tells(call: str, request: pytest.FixtureRequest) -> None:
    if call in DIFFERING:
        request.applymarker(pytest.mark.xfail(strict=True, reason=DIFFERING[call]))
    assert told(pullback, call) == EXPECTED[call]


def test_reasons_are_given_for_calls_that_are_looked_at() -> None:
    assert DIFFERING.keys() <= EXPECTED.keys()
