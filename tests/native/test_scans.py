"""Compiled running sums, products, extrema and logarithms of sums against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import kernels
from pullback.recording import array_formulas
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension
every_scan = pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "reversed_cumsum", "cummax", "cummin", "logcumsumexp"]
)
SHAPES = [
    (1,),
    (7,),
    (8,),
    (9,),
    (1000,),
    (3, 5),
    (16, 9),
    (17, 8),
    (5, 40, 3),
    (2, 3, 4, 5),
    (9, 1),
    (1, 9),
    (40, 1001),
]


@every_scan
@dtypes
@pytest.mark.parametrize("shape", SHAPES)
def test_a_scan_agrees_with_its_reference(name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    for dim in range(len(shape)):
        assert_as_reference(getattr(array_formulas, name), normal(shape, dtype), dim)


@every_scan
@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_a_scan_takes_arrays_of_any_strides(name: str, layout: str) -> None:
    for dim in range(3):
        assert_as_reference(getattr(array_formulas, name), layouts(normal((4, 9, 10), np.float32))[layout], dim)


@every_scan
@dtypes
def test_a_scan_treats_nan_and_infinities_as_its_reference_does(name: str, dtype: Any) -> None:
    generator = np.random.default_rng(0)
    for values in (
        [np.nan, 1, -2, 3],
        [np.inf, 0.5, 2],
        [-np.inf, 0.5, 2],
        [-np.inf, np.inf, np.nan, 0.0, -0.0, 1e-40],
    ):
        array = generator.choice(values, (30, 11)).astype(dtype)
        for dim in (0, 1):
            with np.errstate(all="ignore"):
                actual, expected = (
                    getattr(array_formulas, name)(array, dim),
                    getattr(array_formulas, name).__wrapped__(array, dim),
                )
            if not isinstance(actual, tuple):
                actual, expected = (actual,), (expected,)
            for left, right in zip(actual, expected, strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-5)


def test_equal_elements_give_the_last_place() -> None:
    values, places = kernels.cummax(np.array([1, 1, 0, 1, 2, 2], np.float32), 0)
    assert values.tolist() == [1, 1, 1, 1, 2, 2]
    assert places.tolist() == [0, 1, 1, 3, 4, 5]


@dtypes
@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_of_a_running_product(dtype: Any, shape: tuple[int, ...]) -> None:
    x = normal(shape, dtype)
    x.reshape(-1)[::5] = 0
    for dim in range(len(shape)):
        assert_as_reference(kernels.cumprod_grad, normal(shape, dtype, 1), x, dim, tolerance=40)


@every_scan
def test_threads_do_not_change_a_scan(name: str) -> None:
    array = normal((300, 400), np.float32)
    for dim in (0, 1):
        results = [np.asarray(with_threads(count, getattr(array_formulas, name), array, dim)) for count in (1, 2, 8)]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize(
    ("array", "keywords"),
    [
        (np.arange(4), {}), (np.ones(4, np.float16), {}), (np.ones(()), {}), (np.ones((0, 3)), {}),
        (np.ones(4, np.float32), {"dtype": np.dtype(np.float64)}),
    ],
)  # fmt: skip
def test_other_calls_are_left_to_the_reference(array: Any, keywords: Any) -> None:
    assert declines(kernels.cumsum, array, 0, **keywords)


def test_a_running_sum_of_float32_is_rounded_once() -> None:
    x = np.full(100_000, 0.1, np.float32)
    exact = np.cumsum(x.astype(np.float64))
    np.testing.assert_array_equal(kernels.cumsum(x, 0), exact.astype(np.float32))
