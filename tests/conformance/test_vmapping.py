"""Faults planted on purpose are caught by the comparison under vmap, and what is right is not flagged."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

from .variations import compare_entry
from .vmapping import check_vmapping
from .worker import all_entries

pytestmark = pytest.mark.filterwarnings("ignore")
SIN = all_entries()["sin"]


def another_value(function: Any) -> Any:
    return lambda input: function(input) * 1.5


def another_order(function: Any) -> Any:
    return lambda input: function(input.contiguous()).unsqueeze(0).squeeze(0).cumsum(0) * 0 + function(input)


def refused(function: Any) -> Any:
    return lambda input: function(input) if float(input.sum()) else input


def test_what_is_right_is_not_flagged() -> None:
    _, differences = compare_entry(SIN, check_vmapping, 2)
    assert not differences


@pytest.mark.parametrize(
    ("plant", "words"), [(another_value, "along 0: result"), (another_order, "strides"), (refused, "refused")]
)
def test_a_planted_fault_is_caught(plant: Any, words: str) -> None:
    _, differences = compare_entry(SIN, check_vmapping, 2, plant)
    assert any(words in difference for difference in differences)
