"""Random programs of views, in-place operations, hooks and backward passes show what they show on PyTorch."""

from __future__ import annotations

import pytest

import pullback
from tests.parity.random_programs import compare

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_shows_what_it_shows_on_pytorch(seed: int) -> None:
    assert compare([torch, pullback], seed) is None
