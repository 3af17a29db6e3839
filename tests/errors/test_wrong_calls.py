"""Wrong calls raise what PyTorch raises: the type, and the words that were recorded. See record.py."""

from __future__ import annotations

import re
from functools import cache

import pytest

import pullback

from .outcomes import EXPECTED, is_of_type, outcome, read_calls, words_of
from .wrong_calls import is_compiled

ROWS = [tuple(line.split("\t")) for line in EXPECTED.read_text(encoding="utf-8").splitlines()]

# Arguments are counted before any code of ours runs, with the tensor of a method among them; Cython has words of its own.
COUNTED = re.compile(
    r"[\w.]+\(\) takes (\d+ positional arguments? but \d+ were given|"
    r"(exactly|at least|at most) \d+ positional arguments? \(\d+ given\))"
)


@cache
def preparations() -> dict[str, str]:
    """What runs before the calls of each file."""
    return {file: before for file, before, _ in read_calls()}


@pytest.mark.parametrize(("file", "call", "expected", "phrase"), [pytest.param(*row, id=row[1]) for row in ROWS])
def test_a_wrong_call_raises_what_pytorch_raises(file: str, call: str, expected: str, phrase: str) -> None:
    actual = outcome(pullback, preparations()[file], call)

    assert is_of_type(actual, expected), repr(actual)
    if call.startswith("torch.") and is_compiled(call):
        return
    if not ("positional" in phrase and COUNTED.fullmatch(str(actual))):
        # What is wrong with one argument stands below the signatures, where PyTorch may have no room for both.
        assert any(phrase in " ".join(words_of(actual, last=last)) for last in (False, True))
