"""Random programs compiled; `python -m tests.compiling.programs` runs them by the thousand."""

from __future__ import annotations

import pytest

from tests.compiling.programs import Case, difference


@pytest.mark.parametrize("seed", [*range(2000, 2012), 2017, 2025, 9100500])
def test_random_program_does_the_same_compiled(seed: int) -> None:
    found, _ = difference(Case(seed))
    assert found is None
