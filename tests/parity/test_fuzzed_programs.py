"""A choice of the programs that the fuzzer ran without a difference: `make fuzz` runs more."""

from __future__ import annotations

import pytest

from tests.fuzz import CLEAN_SEEDS
from tests.fuzz.__main__ import examine, looks_always
from tests.fuzz.generation import make_program

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("seed", CLEAN_SEEDS[:: len(CLEAN_SEEDS) // 40])
def test_a_fuzzed_program_does_what_it_does_on_pytorch(seed: int) -> None:
    assert examine(torch, make_program(torch, seed), looks_always(seed)) is None
