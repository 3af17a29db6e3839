"""The compiled pooling kernels against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import pooling
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = [needs_extension, pytest.mark.usefixtures("instruction_set")]

put_in_planes: Any = pooling.put_in_planes
take_from_planes: Any = pooling.take_from_planes
avg_pool_back: Any = pooling.avg_pool_back

# shape, kernel, stride, padding, dilation
CASES = {
    "halves": ((2, 3, 28, 28), (2, 2), (2, 2), (0, 0), (1, 1)),
    "halves of odd sizes": ((2, 3, 13, 33), (2, 2), (2, 2), (0, 0), (1, 1)),
    "padded": ((2, 3, 13, 17), (3, 3), (2, 2), (1, 1), (1, 1)),
    "overlapping": ((4, 9, 40), (3, 3), (1, 1), (1, 1), (1, 1)),
    "dilated": ((2, 2, 15, 16), (3, 2), (1, 2), (1, 1), (2, 3)),
    "wide steps": ((2, 20, 50), (2, 3), (3, 5), (1, 0), (1, 1)),
    "one row": ((3, 1, 200), (1, 4), (1, 3), (0, 2), (1, 1)),
    "one element": ((1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "many planes": ((40, 16, 32, 32), (2, 2), (2, 2), (0, 0), (1, 1)),
    "volumes": ((2, 3, 6, 7, 9), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 1)),
    "volumes with steps": ((2, 5, 8, 40), (3, 2, 3), (1, 2, 3), (0, 1, 1), (1, 2, 1)),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
ceil_modes = pytest.mark.parametrize("ceil_mode", [False, True])


def max_pool(case: Any) -> Any:
    return pooling.max_pool2d_with_indices if len(case[1]) == 2 else pooling.max_pool3d_with_indices


def avg_pool(case: Any) -> Any:
    return pooling.avg_pool2d if len(case[1]) == 2 else pooling.avg_pool3d


@dtypes
@cases
@ceil_modes
def test_maxima_and_their_places(case: Any, ceil_mode: bool, dtype: Any) -> None:
    assert_as_reference(max_pool(case), normal(case[0], dtype), *case[1:], ceil_mode, tolerance=0)


@dtypes
@cases
def test_of_equal_numbers_the_first_wins(case: Any, dtype: Any) -> None:
    values = np.round(normal(case[0], dtype))
    assert_as_reference(max_pool(case), values, *case[1:], False, tolerance=0)
    lowest = np.full(case[0], -np.inf, dtype)
    assert_as_reference(max_pool(case), lowest, *case[1:], True, tolerance=0)


@dtypes
@cases
def test_nan_and_infinity_win(case: Any, dtype: Any) -> None:
    values = normal(case[0], dtype)
    chosen = np.random.default_rng(5).random(case[0])
    values[chosen < 0.1] = np.nan
    values[(chosen > 0.1) & (chosen < 0.2)] = np.inf
    values[chosen > 0.8] = -np.inf
    assert_as_reference(max_pool(case), values, *case[1:], False, tolerance=0)


@dtypes
@cases
def test_maxima_are_put_back_and_taken(case: Any, dtype: Any) -> None:
    values = normal(case[0], dtype)
    maxima, indices = max_pool(case)(values, *case[1:], False)
    sizes = case[0][len(case[0]) - len(case[1]) :]
    assert_as_reference(put_in_planes, normal(maxima.shape, dtype, seed=1), indices, sizes, tolerance=4)
    assert_as_reference(take_from_planes, values, indices, len(sizes), tolerance=0)


@dtypes
@cases
@ceil_modes
@pytest.mark.parametrize(("count_include_pad", "divisor_override"), [(True, None), (False, None), (True, 3)])
def test_averages(
    case: Any, ceil_mode: bool, count_include_pad: bool, divisor_override: int | None, dtype: Any
) -> None:
    values = normal(case[0], dtype)
    rest = (*case[1:4], ceil_mode, count_include_pad, divisor_override)
    averages = assert_as_reference(avg_pool(case), values, *rest, tolerance=4)
    sizes = case[0][len(case[0]) - len(case[1]) :]
    assert_as_reference(avg_pool_back, normal(averages.shape, dtype, seed=1), sizes, *rest, tolerance=8)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_averages_that_are_not_finite(value: float) -> None:
    values = normal((2, 9, 21), np.float32)
    values[0, 3, 20] = values[1, 0, 0] = value
    assert_as_reference(pooling.avg_pool2d, values, (3, 2), (2, 1), (1, 1), True, False, None)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    values = layouts(normal((2, 3, 11, 18), np.float32))[layout]
    steps = ((3, 3), (2, 2), (1, 1))
    assert_as_reference(pooling.max_pool2d_with_indices, values, *steps, (1, 1), False, tolerance=0)
    assert_as_reference(pooling.avg_pool2d, values, *steps, False, True, None, tolerance=4)


def test_threads_change_nothing() -> None:
    case = CASES["many planes"]
    values = normal(case[0], np.float32)
    expected = max_pool(case)(values, *case[1:], False)
    grad = normal(expected[0].shape, np.float32, seed=1)
    for count in (2, 8):
        actual = with_threads(count, max_pool(case), values, *case[1:], False)
        np.testing.assert_array_equal(actual[0], expected[0])
        np.testing.assert_array_equal(actual[1], expected[1])
        back = with_threads(count, put_in_planes, grad, expected[1], (32, 32))
        np.testing.assert_array_equal(back, put_in_planes(grad, expected[1], (32, 32)))


def test_what_the_reference_serves() -> None:
    values = normal((2, 8, 8), np.float32)
    steps = ((2, 2), (2, 2), (0, 0))
    pool: Any = pooling.max_pool2d_with_indices
    assert not declines(pool, values, *steps, (1, 1), False)
    assert declines(pool, values.astype(np.float16), *steps, (1, 1), False)
    assert declines(pool, values.astype(np.int64), *steps, (1, 1), False)
    assert declines(pool, values[:0], *steps, (1, 1), False)
    assert declines(pool, values, (9, 9), (1, 1), (0, 0), (1, 1), False)
    assert declines(pool, values[0, 0], *steps, (1, 1), False)
    maxima, indices = pool(values, *steps, (1, 1), False)
    assert not declines(put_in_planes, maxima, indices, (8, 8))
    assert declines(put_in_planes, maxima, indices + 64, (8, 8))
    assert declines(put_in_planes, maxima, indices.astype(np.int32), (8, 8))
    assert declines(take_from_planes, values, indices - 64, 2)
