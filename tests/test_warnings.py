"""Warnings point at the user's line and are given as often as PyTorch gives them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.modes import user_warnings

BYTES = pullback.tensor([1, 0], dtype=pullback.uint8)
ONCE: dict[str, Callable[[], Any]] = {
    "The use of `x.T` on tensors of dimension other than 2": lambda: pullback.ones(2, 2, 2).T,
    "where received a uint8 condition": lambda: pullback.where(BYTES, pullback.ones(2), pullback.zeros(2)),
    "Casting complex values to real discards": lambda: pullback.tensor([1j]).float(),
    "Using torch.cross without specifying the dim arg": lambda: pullback.cross(pullback.ones(3), pullback.ones(3)),
}


def given(action: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return found


@pytest.mark.parametrize("phrase", ONCE)
def test_what_is_left_off_is_told_once_at_the_users_line(phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_warnings, "_told", set())
    (warning,) = given(ONCE[phrase])
    assert phrase in str(warning.message)
    assert warning.filename == __file__
    assert given(ONCE[phrase]) == []


def test_bytes_as_index_are_told_each_time() -> None:
    for _ in range(2):
        (warning,) = given(lambda: pullback.ones(2)[BYTES])
        assert "indexing with dtype torch.uint8 is now deprecated" in str(warning.message)


@pytest.mark.parametrize("make", [pullback.tensor, pullback.as_tensor])
def test_a_list_of_vectors_is_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        make([pullback.ones(2), pullback.ones(2)])
    assert make([[pullback.ones(1)], [pullback.ones(1, 1)]]).shape == (2, 1)
