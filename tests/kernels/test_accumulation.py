"""Sums of many short rows agree with sums in double precision, and with NumPy's to the bit where rows are shortest."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels.accumulation import add_short_rows, has_short_rows
from pullback.kernels.broadcasting import sum_to


@pytest.mark.parametrize("length", [2, 3, 7, 8, 10, 64, 128])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_short_rows_are_summed_accurately(length: int, dtype: type) -> None:
    values = np.random.default_rng(0).standard_normal((9, 20, length)).astype(dtype)
    actual = add_short_rows(values)
    np.testing.assert_allclose(actual, values.astype(np.float64).sum(-1), rtol=1e-5, atol=1e-5)
    assert actual.dtype == dtype
    assert add_short_rows(values, True).shape == (9, 20, 1)


@pytest.mark.parametrize("length", [2, 5, 7])
def test_shortest_rows_are_summed_in_the_order_of_numpy(length: int) -> None:
    values = np.random.default_rng(0).standard_normal((100, length)).astype(np.float32)
    np.testing.assert_array_equal(add_short_rows(values), values.sum(1))


@pytest.mark.parametrize("length", [3, 16])
def test_nan_and_infinity_stay_in_their_rows(length: int) -> None:
    values = np.ones((100, length), np.float32)
    values[1, 2], values[2, 0] = np.nan, np.inf
    actual = add_short_rows(values)
    assert np.isnan(actual[1])
    assert np.isposinf(actual[2])
    assert np.isfinite(actual[3:]).all()


def test_only_many_rows_of_the_fast_dimension_are_taken() -> None:
    values = np.ones((100, 3), np.float32)
    assert has_short_rows(values, (1,))
    assert not has_short_rows(values, (0,))
    assert not has_short_rows(values[:10], (1,))
    assert not has_short_rows(np.asfortranarray(values), (1,))
    assert not has_short_rows(values.astype(np.float16), (1,))


def test_gradient_is_summed_to_a_column() -> None:
    grad = np.arange(300, dtype=np.float32).reshape(100, 3)
    np.testing.assert_array_equal(sum_to(grad, (100, 1)), grad.sum(1, keepdims=True))
