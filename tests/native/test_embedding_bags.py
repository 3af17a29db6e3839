"""The compiled bags of embeddings against their NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import embedding_bags
from tests.native.rows import assert_as_reference, declines, dtypes, needs_extension, normal, with_threads

pytestmark = needs_extension

modes = pytest.mark.parametrize("mode", [0, 1, 2], ids=["sum", "mean", "max"])
bags: Any = embedding_bags.embedding_bag_forward


def indices(count: int, rows: int) -> Any:
    return np.random.default_rng(1).integers(0, rows, count)


@dtypes
@modes
@pytest.mark.parametrize("padding", [-1, 3])
@pytest.mark.parametrize("offsets", [[0], [0, 2, 2, 5, 20], [0, 30], [0, 0, 0]])
@pytest.mark.parametrize("width", [1, 7, 33])
def test_bags(mode: int, padding: int, offsets: list[int], width: int, dtype: Any) -> None:
    weight = normal((6, width), dtype)
    assert_as_reference(bags, weight, indices(30, 6), np.array(offsets), None, mode, padding, False)


@dtypes
def test_weights_of_their_own(dtype: Any) -> None:
    weight, own = normal((6, 9), dtype), normal((30,), dtype, 2)
    assert_as_reference(bags, weight, indices(30, 6), np.array([0, 4, 20]), own, 0, -1, False)


@modes
def test_values_that_are_not_finite(mode: int) -> None:
    weight = normal((6, 9), np.float32)
    weight[1, 2], weight[4, 5], weight[3] = np.nan, np.inf, -np.inf
    assert_as_reference(bags, weight, indices(40, 6), np.array([0, 4, 20]), None, mode, -1, False)


@modes
def test_threads_change_nothing(mode: int) -> None:
    arguments = (normal((600, 64), np.float32), indices(9000, 600), np.arange(0, 9000, 9), None, mode, -1, False)
    expected = bags(*arguments)
    for count in (2, 8):
        for left, right in zip(with_threads(count, bags, *arguments), expected, strict=True):
            np.testing.assert_array_equal(left, right)


def test_what_the_reference_serves() -> None:
    weight, offsets = normal((6, 9), np.float32), np.array([0, 4])
    assert not declines(bags, weight, indices(30, 6), offsets, None, 0, -1, False)
    assert declines(bags, weight, indices(30, 6) + 1, offsets, None, 0, -1, False)
    assert declines(bags, weight, indices(30, 6), offsets[::-1].copy(), None, 0, -1, False)
    assert declines(bags, weight.astype(np.float16), indices(30, 6), offsets, None, 0, -1, False)
