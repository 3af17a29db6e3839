"""In which order results lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback


@pytest.mark.parametrize("operation", [pullback.add, pullback.sub, pullback.mul])
def test_results_lie_as_the_first_operand_does_where_operands_differ(operation: Callable[..., Any]) -> None:
    plain = pullback.ones(2, 3, 4, 5)
    last = plain.to(memory_format=pullback.channels_last)
    assert operation(plain, last).stride() == (60, 20, 5, 1)
    assert operation(last, plain).stride() == (60, 1, 15, 3)
    assert operation(plain.transpose(2, 3), pullback.ones(2, 3, 5, 4)).stride() == (60, 20, 1, 5)


def test_a_dimension_that_the_first_operand_repeats_lies_as_the_second_has_it() -> None:
    first = pullback.ones(2, 1, 4)
    second = pullback.ones(4, 3, 2).permute(2, 1, 0)
    assert (first * second).stride() == (12, 1, 3)
