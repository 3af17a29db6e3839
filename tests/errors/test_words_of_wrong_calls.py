"""A call with an argument of a wrong type raises PyTorch's error word for word, with the list of signatures where it has one."""

from __future__ import annotations

import json
import re

import pytest

import pullback
from tests.cases import each_case, named

from .wrong_calls import DIFFERING, RECORDED, is_compiled, said

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))
WORDS_OF_PYTHON = re.compile(r"missing \d+ required (positional|keyword-only) argument|takes .*positional argument")
"""Python counts arguments before any code of ours runs. To count them in our own words every call would have to pay."""


@each_case(named("call", EXPECTED), DIFFERING)
def test_a_wrong_call_is_refused_in_the_words_of_pytorch(call: str) -> None:
    actual = said(pullback, call)
    if actual is not None and actual[0] == "AttributeError" and "has no attribute" in actual[1]:
        pytest.skip("pullback has no function of this name")
    assert actual is not None
    if is_compiled(call):
        assert actual[0] == "TypeError"
        return
    if actual[0] != "TypeError" or not WORDS_OF_PYTHON.search(actual[1]):
        assert actual == ["TypeError", EXPECTED[call].replace("torch.", "pullback.")]
