"""The compiled topk against the NumPy kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import sorting
from tests.native.rows import assert_as_reference, declines, dtypes, needs_extension, normal, with_threads

pytestmark = needs_extension
topk: Any = sorting.topk


@dtypes
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("shape", "k"), [((1,), 1), ((9,), 3), ((9,), 9), ((40, 33), 5), ((3, 4, 100), 64), ((7, 5000), 10)]
)
def test_the_first_elements_and_their_places(dtype: Any, largest: bool, shape: tuple[int, ...], k: int) -> None:
    assert_as_reference(topk, normal(shape, dtype), k, len(shape) - 1, largest, True)


@dtypes
@pytest.mark.parametrize("largest", [True, False])
def test_equal_elements_nan_and_infinities(dtype: Any, largest: bool) -> None:
    generator = np.random.default_rng(0)
    x = generator.choice(
        [0.0, 1.0, 2.0, np.nan, np.inf, -np.inf], (50, 100), p=[0.3, 0.3, 0.3, 0.04, 0.03, 0.03]
    ).astype(dtype)
    values, places = topk(x, 12, 1, largest, True)
    np.testing.assert_array_equal(values, topk.__wrapped__(x, 12, 1, largest, True)[0])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    assert all(len(set(row)) == 12 for row in places.tolist())


def test_threads_do_not_change_the_result() -> None:
    x = normal((500, 300), np.float32)
    np.testing.assert_array_equal(with_threads(3, topk, x, 5, 1)[1], topk.__wrapped__(x, 5, 1)[1])


def test_what_is_left_to_the_reference() -> None:
    x = normal((4, 100), np.float32)
    assert declines(topk, x, 65, 1)
    assert declines(topk, x, 2, 0)
    assert declines(topk, x, 0, 1)
    assert declines(topk, x.T, 2, 1)
    with pytest.raises(RuntimeError, match="k out of range"):
        topk(x, 101, 1)
