"""Sorted search, distinct values, counts."""

from __future__ import annotations

import pullback


def test_searchsorted_finds_left_and_right_places() -> None:
    edges = pullback.tensor([1, 3, 3, 5])
    assert pullback.searchsorted(edges, pullback.tensor([3, 6])).tolist() == [1, 4]
    assert pullback.searchsorted(edges, pullback.tensor([3, 6]), right=True).tolist() == [3, 4]


def test_searchsorted_searches_each_row_for_its_own_values() -> None:
    rows = pullback.tensor([[1, 3, 5], [2, 4, 6]])
    assert pullback.searchsorted(rows, pullback.tensor([[3, 9], [3, 4]])).tolist() == [[1, 3], [1, 1]]


def test_unique_returns_what_is_asked_for() -> None:
    values, inverse, counts = pullback.unique(pullback.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1], [1, 2])


def test_unique_consecutive_keeps_separate_runs() -> None:
    assert pullback.unique_consecutive(pullback.tensor([1, 1, 2, 1])).tolist() == [1, 2, 1]


def test_bincount_sums_weights() -> None:
    counts = pullback.bincount(pullback.tensor([0, 2, 2]), pullback.tensor([1.0, 2.0, 3.0]), minlength=4)
    assert counts.tolist() == [1.0, 0.0, 5.0, 0.0]


def test_histogram_returns_counts_and_edges() -> None:
    found = pullback.histogram(pullback.tensor([1.0, 2.0, 1.0, 5.0]), 4)
    assert (found.hist.tolist(), found.bin_edges.tolist()) == ([2.0, 1.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0])
