"""Python's own types stand for dtypes wherever a dtype may be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

CALLS: list[Callable[[Any, Any], Any]] = [
    lambda x, t: x.to(t),
    lambda x, t: x.to(dtype=t),
    lambda x, t: pullback.as_tensor(x, dtype=t),
    lambda x, t: x.sum(dtype=t),
    lambda x, t: pullback.prod(x, dtype=t),
    lambda x, t: pullback.zeros_like(x, dtype=t),
    lambda x, t: x.view(t),
]


def test_limits_are_told_of_types_too() -> None:
    assert pullback.finfo(float).eps == pullback.finfo(pullback.float64).eps
    assert pullback.iinfo(int).max == 2**63 - 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("given", "expected"), [(int, pullback.int64), (float, pullback.float64), (bool, pullback.bool)]
)
def test_type_stands_for_its_dtype(call: Callable[[Any, Any], Any], given: type, expected: pullback.dtype) -> None:
    assert call(pullback.ones(2), given).dtype is expected
