"""Positions of elements that are not zero, as they are found where there are many."""

from __future__ import annotations

import pytest

import pullback


@pytest.mark.parametrize("size", [(3, 4), (40, 50), (12, 10, 15), (2, 0, 1000)])
def test_positions_are_those_that_a_loop_finds(size: tuple[int, ...]) -> None:
    mask = pullback.arange(pullback.zeros(size).numel()).reshape(size) % 3 == 1
    expected = [[flat // mask.stride(d) % mask.size(d) for d in range(mask.ndim)] for flat in range(1, mask.numel(), 3)]
    assert pullback.nonzero(mask).tolist() == expected
    assert [list(place) for place in zip(*[p.tolist() for p in mask.nonzero(as_tuple=True)], strict=True)] == expected


def test_a_mask_in_column_major_order_is_read_row_by_row() -> None:
    mask = (pullback.arange(2000).reshape(50, 40) % 7 == 0).T
    assert pullback.nonzero(mask)[:3].tolist() == [[0, 0], [0, 7], [0, 14]]


def test_take_names_the_wrong_position() -> None:
    with pytest.raises(IndexError, match="out of range: tried to access index 6 on a tensor of 6 elements"):
        pullback.take(pullback.ones(2, 3), pullback.tensor([0, 6, -1]))


@pytest.mark.parametrize("size", [7, 5000])
def test_the_median_is_the_first_of_equal_elements_in_the_order_of_a_stable_sort(size: int) -> None:
    x = (pullback.arange(size) * 7 % 5).float()
    values, order = pullback.sort(x, stable=True)
    value, index = pullback.median(x, 0)
    assert (value.item(), index.item()) == (values[(size - 1) // 2].item(), order[(size - 1) // 2].item())
