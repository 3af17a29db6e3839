"""The compiled adaptive maxima against their NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import pooling_to_size
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

adaptive: Any = pooling_to_size._adaptive
unpool: Any = pooling_to_size._unpool


@dtypes
@pytest.mark.parametrize(
    ("shape", "counts"),
    [
        ((2, 3, 7, 7), (1, 1)),
        ((2, 3, 7, 9), (3, 4)),
        ((3, 40, 50), (7, 2)),
        ((2, 5, 3), (7, 8)),
        ((2, 9, 8, 40), (2, 3, 2)),
    ],
)
def test_maxima(shape: tuple[int, ...], counts: tuple[int, ...], dtype: Any) -> None:
    assert_as_reference(adaptive, normal(shape, dtype), counts)
    ties = np.round(normal(shape, dtype))
    assert_as_reference(adaptive, ties, counts)


def test_values_that_are_not_finite() -> None:
    x = normal((2, 40, 50), np.float32)
    x[0, 3, 4], x[0, 3, 30], x[1, 30, 7], x[1, 0, 0] = np.nan, np.nan, np.inf, np.nan
    x[1, 20:, 25:] = -np.inf
    for counts in ((1, 1), (2, 2), (3, 7), (40, 50)):
        assert_as_reference(adaptive, x, counts)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    x = normal((4, 6, 9), np.float32)
    for left, right in zip(adaptive(layouts(x)[layout], (2, 4)), adaptive(x, (2, 4)), strict=True):
        np.testing.assert_array_equal(left, right)


def test_threads_change_nothing() -> None:
    x = normal((200, 30, 30), np.float32)
    expected = adaptive(x, (4, 7))
    for count in (2, 8):
        for left, right in zip(with_threads(count, adaptive, x, (4, 7)), expected, strict=True):
            np.testing.assert_array_equal(left, right)


def test_what_the_reference_serves() -> None:
    x = normal((2, 7, 7), np.float32)
    assert not declines(adaptive, x, (2, 2))
    assert declines(adaptive, x.astype(np.int64), (2, 2))
    assert declines(adaptive, x, (0, 2))


@dtypes
@pytest.mark.parametrize("sizes", [(8, 10), (9, 11)])
def test_maxima_put_back(sizes: tuple[int, int], dtype: Any) -> None:
    values = normal((2, 3, 4, 5), dtype)
    places = np.stack([np.random.default_rng(i).permutation(80)[:20] for i in range(6)]).reshape(2, 3, 4, 5)
    expected = assert_as_reference(unpool, values, places, sizes)
    for count in (2, 8):
        np.testing.assert_array_equal(with_threads(count, unpool, values, places, sizes), expected)


def test_a_place_beyond_the_plane_raises() -> None:
    values, places = normal((1, 2, 2), np.float32), np.array([[[0, 1], [2, 16]]])
    with pytest.raises(RuntimeError, match="Found an invalid max index: 16"):
        unpool(values, places, (4, 4))
    assert declines(unpool, values, places, (4, 4))
    assert declines(unpool, values, -places, (4, 4))
