"""The compiled maps along a dimension against their NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import resampling
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

METHODS = ["area", "nearest", "nearest-exact", "linear", "cubic", "linear-aa", "cubic-aa", "lanczos-aa"]
methods = pytest.mark.parametrize("method", METHODS)
along: Any = resampling._apply_along


@dtypes
@methods
@pytest.mark.parametrize("sizes", [(7, 3), (3, 7), (32, 64), (112, 6), (5, 1), (1, 4)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_maps_and_their_adjoints(method: str, sizes: tuple[int, int], axis: int, dtype: Any) -> None:
    old, new = sizes
    single = dtype is np.float32
    taps = resampling._taps(method, old, new, None, False, single)
    back = resampling._transposed_taps(method, old, new, None, False, single)
    shape, back_shape = [3, 4, 5], [3, 4, 5]
    shape[axis], back_shape[axis] = old, new
    assert_as_reference(along, normal(tuple(shape), dtype), taps, axis, tolerance=64)
    assert_as_reference(along, normal(tuple(back_shape), dtype), back, axis, tolerance=64)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    x = normal((4, 6, 9), np.float32)
    taps = resampling._taps("linear", 9, 20, None, False, True)
    np.testing.assert_array_equal(along(layouts(x)[layout], taps, 2), along(x, taps, 2))


@pytest.mark.parametrize("axis", [1, 2])
def test_threads_change_nothing(axis: int) -> None:
    x = normal((300, 20, 20), np.float32)
    taps = resampling._taps("cubic", 20, 41, None, False, True)
    expected = along(x, taps, axis)
    for count in (2, 8):
        np.testing.assert_array_equal(with_threads(count, along, x, taps, axis), expected)


def test_averages_do_not_spread_what_is_not_finite() -> None:
    x = normal((2, 7), np.float32)
    x[:, 0] = np.inf
    for new in (3, 5):
        result = along(x, resampling._taps("area", 7, new, None, False, True), 1)
        assert np.isinf(result[:, 0]).all()
        assert np.isfinite(result[:, 1:]).all()


def test_what_the_reference_serves() -> None:
    x = normal((2, 7), np.float32)
    taps = resampling._taps("linear", 7, 3, None, False, True)
    assert not declines(along, x, taps, 1)
    assert declines(along, x.astype(np.complex64), taps, 1)
    assert declines(along, x, (np.arange(7)[:, None], None), 1)
    assert declines(along, x, (taps[0] + 7, taps[1]), 1)
