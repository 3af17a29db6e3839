"""The tests of many cases run all of them and tell of each that fails."""

from __future__ import annotations

import pytest

from tests.cases import check_each, each_case, named

seen: list[int] = []


@each_case(named("number", range(5)), per_test=2)
@pytest.mark.parametrize("factor", [1, 2])
def test_every_case_is_seen(number: int, factor: int) -> None:
    seen.append(number * factor)


def test_all_were_seen() -> None:
    assert sorted(seen) == [0, 0, 1, 2, 2, 3, 4, 4, 6, 8]


def _is_small(name: str) -> None:
    if name == "skipped":
        pytest.skip("not today")
    assert len(name) < 4


def test_every_failure_is_told_under_its_name() -> None:
    with pytest.raises(ExceptionGroup, match="3 of 4 cases fail") as raised:
        check_each(_is_small, ["wrong", "two", "false", "one"], {"one": "it is long"})
    told = [str(error) + "".join(getattr(error, "__notes__", [])) for error in raised.value.exceptions]
    assert ["case: wrong" in told[0], "case: false" in told[1], "was to differ" in told[2]] == [True] * 3


def test_cases_that_are_to_differ_may_fail() -> None:
    check_each(_is_small, ["wrong", "two", "skipped"], {"wrong": "it is long"})


def test_a_test_is_skipped_if_all_of_its_cases_are() -> None:
    with pytest.raises(pytest.skip.Exception, match="not today"):
        check_each(_is_small, ["skipped"])
