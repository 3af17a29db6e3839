"""Rows that add up in a table, and maxima of bags, whatever the number of rows."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels import embedding_bags, embeddings


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 256, 257, 5000])
@pytest.mark.parametrize("rows", [1, 3, 700])
def test_rows_of_any_number_of_occurrences_add_up(count: int, rows: int) -> None:
    source = np.random.default_rng(0)
    indices, values = source.integers(0, rows, count), source.integers(-9, 9, (count, 2)).astype(np.float64)
    expected = np.zeros((rows, 2))
    np.add.at(expected, indices, values)
    np.testing.assert_array_equal(embeddings.add_rows(values, indices, rows), expected)


def test_the_error_of_many_occurrences_of_a_row_grows_slowly() -> None:
    values = np.random.default_rng(0).random((20000, 8))
    actual = embeddings.add_rows(values.astype(np.float32), np.zeros(20000, np.int64), 1)
    np.testing.assert_allclose(actual[0], values.sum(0), rtol=1e-6)


@pytest.mark.parametrize("length", [1, 3, 2000])
def test_maxima_of_bags_are_the_first_of_equal_ones(length: int) -> None:
    source = np.random.default_rng(0)
    weight, indices = source.integers(0, 5, (20, 4)).astype(np.float64), source.integers(0, 20, 3 * length)
    offsets = np.array([0, length, length, 2 * length])
    forward = getattr(embedding_bags.embedding_bag_forward, "__wrapped__", embedding_bags.embedding_bag_forward)
    best, _, _, sizes, chosen = forward(weight, indices, offsets, None, 2, -1, False)
    rows = weight[indices].reshape(3, length, 4)
    np.testing.assert_array_equal(best[[0, 2, 3]], rows.max(1))
    places = indices.reshape(3, length)[np.arange(3)[:, None], rows.argmax(1)]
    np.testing.assert_array_equal(chosen[[0, 2, 3]], places)
    assert sizes.tolist() == [length, 0, length, length]
    np.testing.assert_array_equal(chosen[1], -1)
    np.testing.assert_array_equal(best[1], 0)


def test_a_nan_is_the_maximum_of_a_bag_only_at_its_head() -> None:
    weight = np.array([[1.0], [np.nan], [2.0]])
    forward = getattr(embedding_bags.embedding_bag_forward, "__wrapped__", embedding_bags.embedding_bag_forward)
    best, *_, chosen = forward(weight, np.array([0, 1, 2, 1, 2]), np.array([0, 3]), None, 2, -1, False)
    np.testing.assert_array_equal(best, [[2.0], [np.nan]])
    assert chosen.tolist() == [[2], [1]]
