"""Wrong calls raise what PyTorch raises: the type, and the words that were recorded. See record.py."""

from __future__ import annotations

from functools import cache

import pytest

import pullback

from .outcomes import EXPECTED, is_of_type, outcome, read_calls, words_of

ROWS = [tuple(line.split("\t")) for line in EXPECTED.read_text(encoding="utf-8").splitlines()]


@cache
def preparations() -> dict[str, str]:
    """What runs before the calls of each file."""
    return {file: before for file, before, _ in read_calls()}


@pytest.mark.parametrize(("file", "call", "expected", "phrase"), [pytest.param(*row, id=row[1]) for row in ROWS])
def test_a_wrong_call_raises_what_pytorch_raises(file: str, call: str, expected: str, phrase: str) -> None:
    actual = outcome(pullback, preparations()[file], call)

    assert is_of_type(actual, expected), repr(actual)
    assert phrase in " ".join(words_of(actual))
