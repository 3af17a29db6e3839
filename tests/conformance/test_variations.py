"""Faults planted on purpose are caught by the comparison over layouts and dtypes, and what is right is not flagged."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

import pullback

from .variations import check_layout, check_other_dtypes, compare_entry
from .worker import all_entries

pytestmark = pytest.mark.filterwarnings("ignore")
SIN = all_entries()["sin"]


def row_major(result: Any) -> Any:
    return result.contiguous()


def other_node(result: Any) -> Any:
    return result * 1


def conjugated(result: Any) -> Any:
    return result.conj() if result.is_complex() else result


def refusing_nothing(function: Any) -> Any:
    def call(input: Any, *rest: Any, **options: Any) -> Any:
        if input.dtype == pullback.bool:
            raise NotImplementedError("not for bool")
        return function(input, *rest, **options)

    return call


def _on_result(change: Any) -> Any:
    return lambda function: lambda *arguments, **options: change(function(*arguments, **options))


def test_what_is_right_is_not_flagged() -> None:
    for check in (check_layout, check_other_dtypes):
        tried, differences = compare_entry(SIN, check, 2)
        assert tried
        assert not differences


@pytest.mark.parametrize("change", [row_major, other_node, conjugated])
def test_wrong_strides_nodes_and_lazy_bits_are_caught(change: Any) -> None:
    assert compare_entry(SIN, check_layout, 2, _on_result(change))[1]


def test_a_wrong_refusal_is_caught() -> None:
    assert compare_entry(SIN, check_other_dtypes, 2, refusing_nothing)[1]


def test_a_missing_refusal_is_caught() -> None:
    entry = all_entries()["median"]

    def accepting(function: Any) -> Any:
        def call(input: Any, *rest: Any, **options: Any) -> Any:
            try:
                return function(input, *rest, **options)
            except Exception:
                return input

        return call

    assert not compare_entry(entry, check_other_dtypes, 2)[1]
    assert compare_entry(entry, check_other_dtypes, 2, accepting)[1]
