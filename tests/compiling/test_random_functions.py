"""Random functions compiled; `make fuzz-compile` runs them by the thousand."""

from __future__ import annotations

import pytest

from tests.compiling.random_functions import difference


@pytest.mark.parametrize("seed", range(51, 60))
def test_random_function_does_the_same_compiled(seed: int) -> None:
    assert difference(seed, with_compiler=seed == 54) == ""
