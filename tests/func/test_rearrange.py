"""rearrange: dimensions by name."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.func import rearrange, vmap

X = pullback.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "lengths", "expected"),
    [
        ("a b c -> c a b", {}, X.permute(2, 0, 1)),
        ("a b c -> a (b c)", {}, X.reshape(2, 12)),
        ("a b (c d) -> a d b c", {"c": 2}, X.reshape(2, 3, 2, 2).permute(0, 3, 1, 2)),
        ("a ... -> ... a", {}, X.permute(1, 2, 0)),
        ("a ... -> (...) a", {}, X.permute(1, 2, 0).reshape(12, 2)),
        ("a b c -> a 1 b () c", {}, X.reshape(2, 1, 3, 1, 4)),
    ],
)
def test_patterns(pattern: str, lengths: dict[str, int], expected: Any) -> None:
    assert pullback.equal(rearrange(X, pattern, **lengths), expected)


def test_a_list_is_stacked() -> None:
    assert rearrange([X, X], "s a b c -> a (s b) c").shape == (2, 6, 4)


def test_under_vmap() -> None:
    assert pullback.equal(vmap(lambda x: rearrange(x, "a b -> b a"))(X), X.permute(0, 2, 1))


@pytest.mark.parametrize(
    ("pattern", "phrase"),
    [
        ("a b c", "exactly one '->'"),
        ("a b c -> a b", "only on one side"),
        ("a a b -> a b", "occurs twice"),
        ("a b -> a b", "Number of dimensions"),
        ("a b (c d) -> a b c d", "Could not infer"),
        ("a b (c -> a b c", "not balanced"),
    ],
)
def test_wrong_patterns(pattern: str, phrase: str) -> None:
    with pytest.raises(ValueError) as error:
        rearrange(X, pattern)
    assert phrase in str(error.value)
