"""Compiled gradients of extrema, variances and products against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import extrema, reductions, statistics
from tests.native.rows import assert_as_reference, declines, dtypes, needs_extension, normal, with_threads

pytestmark = needs_extension
shapes = pytest.mark.parametrize(
    "shape", [(1,), (9,), (2000,), (3, 5), (40, 70), (5, 64), (3, 130), (2, 3, 4), (4, 1, 65), (200, 300)]
)


def reduced(shape: tuple[int, ...]) -> list[Any]:
    return [None, *[(d,) for d in range(len(shape))]]


@dtypes
@shapes
def test_a_gradient_is_shared_among_equal_extrema(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.round(normal(shape, dtype) * 2)
    for dim in reduced(shape):
        for keepdim in (False, True):
            most = extrema.amax(x, dim, keepdim)
            grad = normal(most.shape, dtype, 1)
            assert_as_reference(extrema.extremum_grad, grad, x, most, dim, keepdim)
            spread = np.broadcast_to(np.asarray(2, dtype), most.shape)
            assert_as_reference(extrema.extremum_grad, spread, x, most, dim, keepdim)


@dtypes
def test_the_gradient_of_a_nan_is_nan(dtype: Any) -> None:
    x = np.array([[1, np.nan, 1], [2, 1, 2]], dtype)
    with np.errstate(all="ignore"):
        assert_as_reference(extrema.extremum_grad, normal((3,), dtype), x, extrema.amax(x, (0,)), (0,), False)
        assert_as_reference(extrema.extremum_grad, normal((2,), dtype), x, extrema.amax(x, (1,)), (1,), False)


@dtypes
@shapes
@pytest.mark.parametrize("correction", [0, 1, 1.5])
def test_the_gradient_of_a_variance(dtype: Any, shape: tuple[int, ...], correction: float) -> None:
    x = normal(shape, dtype)
    for dim in reduced(shape):
        for keepdim in (False, True):
            grad = normal(np.sum(x, dim, keepdims=keepdim).shape, dtype, 1)
            with np.errstate(all="ignore"):
                assert_as_reference(statistics.var_grad, grad, x, dim, correction, keepdim, tolerance=16)


@dtypes
@shapes
def test_the_product_of_the_others(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.exp(normal(shape, dtype) / 10)
    for dim in range(len(shape)):
        assert_as_reference(reductions.wide_product_of_others, x, dim, tolerance=64)
        zeros = x.copy()
        zeros.reshape(-1)[:: max(3, x.size // 2)] = 0
        with np.errstate(all="ignore"):
            assert_as_reference(reductions.wide_product_of_others, zeros, dim, tolerance=64)


def test_threads_do_not_change_the_result() -> None:
    x = normal((300, 400), np.float32)
    for dim, size in (((0,), 400), ((1,), 300)):
        grad = normal((size,), np.float32, 1)
        expected = with_threads(1, statistics.var_grad, grad, x, dim, 1, False)
        np.testing.assert_array_equal(with_threads(3, statistics.var_grad, grad, x, dim, 1, False), expected)


def test_what_is_left_to_the_reference() -> None:
    x, grad = normal((2, 3, 4), np.float32), normal((3,), np.float32)
    assert declines(statistics.var_grad, grad, x, (0, 2), 1, False)
    assert declines(statistics.var_grad, grad, x.astype(np.float64), (0, 2), 1, False)
    assert declines(extrema.extremum_grad, grad, x.T, grad, (0,), False)
