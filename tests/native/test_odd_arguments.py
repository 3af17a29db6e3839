"""Numbers and positions at the edge of 64 bits, as the fuzz of odd arrays (tests/sanitizing) found them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback import kernels

EDGES = (2**63 - 1, 2**63 - 2, 2**62, 2**60, -(2**63))


@pytest.mark.parametrize("dim", EDGES)
@pytest.mark.parametrize("count", [1, 2])
def test_an_index_along_a_dimension_that_is_not_there_is_refused(dim: int, count: int) -> None:
    positions = [np.zeros(3, np.int64)] * count

    with pytest.raises((IndexError, OverflowError, MemoryError)):
        kernels.index(np.ones((4, 4), np.float32), positions, tuple(range(dim, dim + count)))


@pytest.mark.parametrize("position", EDGES)
def test_a_position_at_the_edge_of_the_integers_is_out_of_range(position: int) -> None:
    with pytest.raises(IndexError):
        pullback.ones(3, 2)[pullback.tensor([position])]


@pytest.mark.parametrize("dim", [2**32, -(2**32), 2**63 - 1])
def test_a_dimension_is_not_cut_to_32_bits(dim: int) -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        pullback.ones(3).unsqueeze(dim)


@pytest.mark.parametrize("step", [2**31, 2**60, 2**63 - 1])
def test_a_slice_of_a_step_beyond_the_end_takes_the_first_element(step: int) -> None:
    x: Any = pullback.arange(3.0)

    assert x[::step].tolist() == [0.0]
