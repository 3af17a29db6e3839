"""Compiled truth values, counts and sums of whole numbers against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import reductions
from tests.native.rows import assert_as_reference, declines, needs_extension

pytestmark = needs_extension
SHAPES = [(), (1,), (7,), (5000,), (3, 5), (16, 16), (70, 9), (2, 3, 4), (300, 400), (1, 5, 1)]


def dims_of(shape: tuple[int, ...]) -> list[Any]:
    return [
        None,
        *[(d,) for d in range(len(shape))],
        *([(0, 1), (len(shape) - 2, len(shape) - 1)] if shape[1:] else []),
    ]


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64"])
@pytest.mark.parametrize("chance", [0.0, 0.01, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_truth_values_and_counts(dtype: str, chance: float, shape: tuple[int, ...]) -> None:
    x = (np.random.default_rng(0).random(shape) < chance).astype(dtype)
    for dim in dims_of(shape):
        assert_as_reference(reductions.count_nonzero, x, dim)
        for keepdim in (False, True):
            for kernel in (reductions.any, reductions.all):
                actual, expected = kernel(x, dim, keepdim), kernel.__wrapped__(x, dim, keepdim)  # type: ignore[attr-defined]
                assert (actual.dtype, actual.shape) == (np.bool_, expected.shape)
                np.testing.assert_array_equal(actual, expected)


def test_nan_is_true() -> None:
    x = np.array([np.nan, 0.0, -0.0], np.float32)
    assert reductions.count_nonzero(x) == 1
    assert bool(reductions.any(x))


@pytest.mark.parametrize("dtype", ["bool", "int64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_whole_numbers(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-(2**62), 2**62, shape).astype(dtype)
    assert_as_reference(reductions.sum_all, x)
    for dim in dims_of(shape):
        for keepdim in (False, True):
            assert_as_reference(reductions.sum, x, dim, keepdim)


def test_what_is_left_to_the_reference() -> None:
    assert declines(reductions.any, np.ones((2, 3)), ())
    assert declines(reductions.any, np.ones((2, 3), np.uint8), (0,))
    assert declines(reductions.count_nonzero, np.ones((2, 3, 4)), (0, 2))
    assert declines(reductions.sum, np.ones((2, 3), np.bool_), dtype=np.dtype(np.int32))
    assert declines(reductions.all, np.ones((0, 3)))
