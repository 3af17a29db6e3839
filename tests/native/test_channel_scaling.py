"""The compiled batch norms by given statistics against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import normalization
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

SHAPES = pytest.mark.parametrize(
    "shape", [(1, 1), (4, 6), (64, 70), (2, 6, 5), (3, 4, 9, 11), (5, 2, 40, 40), (2, 3, 1, 7)]
)
evaluation: Any = normalization.batch_norm_evaluation
to_input: Any = normalization.batch_norm_evaluation_back
to_weight: Any = normalization.batch_norm_evaluation_weight_back


def statistics(channels: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """A weight, a bias, means and variances."""
    weight, bias, mean, spread = (normal((channels,), dtype, seed) for seed in range(1, 5))
    return weight, bias, mean, np.abs(spread) + dtype(0.1)


@dtypes
@SHAPES
def test_batch_norm_by_given_statistics(shape: tuple[int, ...], dtype: Any) -> None:
    weight, bias, mean, variance = statistics(shape[1], dtype)
    x, grad = normal(shape, dtype), normal(shape, dtype, 5)
    for factor in (weight, None):
        for shift in (bias, None):
            assert_as_reference(evaluation, x, factor, shift, mean, variance, 1e-5, tolerance=16)
        assert_as_reference(to_input, grad, factor, variance, 1e-5, tolerance=16)
    assert_as_reference(to_weight, grad, x, np.dtype(dtype), mean, variance, 1e-5, tolerance=200)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    weight, bias, mean, variance = statistics(6, np.float32)
    x = normal((4, 6, 9), np.float32)
    moved = layouts(x)[layout]
    np.testing.assert_array_equal(
        evaluation(moved, weight, bias, mean, variance, 1e-5), evaluation(x, weight, bias, mean, variance, 1e-5)
    )
    assert_as_reference(to_weight, moved, x, np.dtype(np.float32), mean, variance, 1e-5, tolerance=200)


@pytest.mark.parametrize("shape", [(8, 16, 60, 60), (600, 300)])
def test_threads_change_nothing(shape: tuple[int, ...]) -> None:
    weight, bias, mean, variance = statistics(shape[1], np.float32)
    x = normal(shape, np.float32)
    for kernel, arguments in (
        (evaluation, (x, weight, bias, mean, variance, 1e-5)),
        (to_weight, (x, x, np.dtype(np.float32), mean, variance, 1e-5)),
    ):
        expected = kernel(*arguments)
        for count in (2, 8):
            np.testing.assert_array_equal(with_threads(count, kernel, *arguments), expected)


def test_values_that_are_not_finite() -> None:
    weight, bias, mean, variance = statistics(3, np.float32)
    x = normal((2, 3, 20), np.float32)
    x[0, 1, 4], x[1, 2, 19], x[1, 0, 0] = np.nan, np.inf, -np.inf
    assert_as_reference(evaluation, x, weight, bias, mean, variance, 1e-5, tolerance=16)
    assert_as_reference(to_weight, x, x, np.dtype(np.float32), mean, variance, 1e-5, tolerance=200)


def test_what_the_reference_serves() -> None:
    weight, bias, mean, variance = statistics(3, np.float32)
    x = normal((2, 3, 20), np.float32)
    assert not declines(evaluation, x, weight, bias, mean, variance, 1e-5)
    assert declines(evaluation, x.astype(np.float16), weight, bias, mean, variance, 1e-5)
    assert declines(evaluation, x, weight.astype(np.float64), bias, mean, variance, 1e-5)
    assert declines(evaluation, x[:0], weight, bias, mean, variance, 1e-5)
    assert declines(to_weight, x, x, np.dtype(np.float64), mean, variance, 1e-5)
