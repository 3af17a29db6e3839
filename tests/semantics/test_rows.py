"""Every row of behaviour, compared with what PyTorch reported when it was recorded."""

from __future__ import annotations

import json

import pytest

import pullback
from pullback.modes import user_warnings
from tests.semantics.record import EXPECTED
from tests.semantics.reporting import all_rows, run_row

ROWS = all_rows()
RECORDED = json.loads(EXPECTED.read_text())


@pytest.mark.parametrize("name", ROWS)
def test_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_warnings, "_told", set())  # each row was recorded with nothing warned of before
    expected = RECORDED[name]
    actual = run_row(ROWS[name], pullback)
    assert actual == expected


def test_every_recorded_row_still_exists() -> None:
    assert set(RECORDED) == set(ROWS)
