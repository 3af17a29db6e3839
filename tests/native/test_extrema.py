"""The compiled extrema with indices against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import extrema
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

SELECTIONS = pytest.mark.parametrize("kernel", [extrema.max_dim, extrema.min_dim, extrema.argmax, extrema.argmin])


@dtypes
@SELECTIONS
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 8), (9, 31), (5, 33), (4, 64), (3, 1000), (2, 40000), (6, 5, 70), (40, 3)])
def test_every_dimension(kernel: Any, shape: tuple[int, ...], keepdim: bool, dtype: Any) -> None:
    values = np.round(normal(shape, dtype) * dtype(4))  # with numbers that occur several times
    for dim in range(len(shape)):
        assert_as_reference(kernel, values, dim, keepdim)


@dtypes
@pytest.mark.parametrize("kernel", [extrema.argmax, extrema.argmin])
@pytest.mark.parametrize("shape", [(), (1,), (5, 6), (50000,)])
def test_the_flattened_array(kernel: Any, shape: tuple[int, ...], dtype: Any) -> None:
    assert_as_reference(kernel, normal(shape, dtype))
    assert_as_reference(kernel, normal(shape, dtype), None, True)


@dtypes
@SELECTIONS
@pytest.mark.parametrize("places", [[0], [4], [39], [5, 3], [30, 35]])
def test_a_nan_is_the_extremum(kernel: Any, places: list[int], dtype: Any) -> None:
    values = normal((40, 3), dtype)
    values[places, 1] = np.nan
    values[7, 2] = np.inf
    values[8, 2] = -np.inf
    assert_as_reference(kernel, values, 0)
    assert_as_reference(kernel, np.ascontiguousarray(values.T), 1)
    assert_as_reference(kernel, np.full((3, 40), -np.inf, dtype), 1)
    assert_as_reference(kernel, np.full((3, 40), np.nan, dtype), 0)


@dtypes
@SELECTIONS
@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_memory(kernel: Any, layout: str, dtype: Any) -> None:
    for dim in range(3):
        assert_as_reference(kernel, layouts(normal((6, 5, 10), dtype))[layout], dim)


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (extrema.max_dim, (np.ones(3, np.int64), 0)),
        (extrema.max_dim, (np.ones((2, 0), np.float32), 1)),
        (extrema.max_dim, (np.ones((), np.float32), 0)),
        (extrema.max_dim, (np.ones(3, np.float32), 1)),
        (extrema.argmax, (np.ones(0, np.float32),)),
        (extrema.argmax, (np.ones(3, np.float16),)),
    ],
)
def test_what_is_left_to_the_reference(kernel: Any, arguments: tuple[Any, ...]) -> None:
    assert declines(kernel, *arguments)


@dtypes
@SELECTIONS
@pytest.mark.parametrize("threads", [2, 8])
def test_threads_do_not_change_the_result(kernel: Any, threads: int, dtype: Any) -> None:
    values = normal((300, 400), dtype)
    for dim in range(2):
        actual, expected = with_threads(threads, kernel, values, dim), with_threads(1, kernel, values, dim)
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))
