"""Compiled kernels on floats of 16 bits against their references: rows in float32, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import arithmetic, extrema, norms, reductions, softmaxes
from tests.native.rows import needs_extension

pytestmark = needs_extension


def dtypes() -> list[Any]:
    try:
        import ml_dtypes
    except ImportError:
        return [np.dtype(np.float16)]
    return [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def numbers(*shape: int, dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def assert_close(actual: Any, expected: Any, dtype: Any) -> None:
    assert type(actual) is np.ndarray
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    step = 2**-9 if dtype == np.float16 else 2**-6
    np.testing.assert_allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=step, atol=step / 64)


SHAPES = [(1,), (7,), (3, 5), (2, 1, 9), (5, 4097), (1, 9000), (40, 1000)]


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(dtype: Any, shape: tuple[int, ...], keepdim: bool) -> None:
    values = np.abs(numbers(*shape, dtype=dtype))
    last = (len(shape) - 1,)
    for kernel in (reductions.sum, reductions.mean, extrema.amax, extrema.amin, reductions.nansum):
        function: Any = kernel
        for dims in (last, tuple(range(len(shape)))):
            expected = np.asarray(function.__wrapped__(values, dims, keepdim))
            assert_close(function(values, dims, keepdim), expected, dtype)
    for order in (1, 2, float("inf")):
        norm: Any = norms.linalg_vector_norm
        assert_close(
            norm(values, order, last, keepdim), np.asarray(norm.__wrapped__(values, order, last, keepdim)), dtype
        )


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
def test_extrema_are_exact_and_keep_nan(dtype: Any) -> None:
    values = numbers(6, 5000, dtype=dtype)
    values[1, 4999] = np.nan
    values[2, 0] = np.inf
    function: Any = extrema.amax
    np.testing.assert_array_equal(function(values, (1,)).astype(np.float32), np.max(values.astype(np.float32), axis=1))
    total: Any = reductions.sum_all
    assert np.isnan(total(values).astype(np.float32))


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
def test_strides_and_other_dimensions_are_the_references(dtype: Any) -> None:
    function: Any = reductions.sum
    values = numbers(30, 40, dtype=dtype)
    for array, dims in ((values, (0,)), (values.T, (1,)), (values[:, ::2], (1,)), (values[:0], (0,))):
        assert_close(np.asarray(function(array, dims)), np.asarray(function.__wrapped__(array, dims)), dtype)


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmaxes(dtype: Any, shape: tuple[int, ...]) -> None:
    values, grad = numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=1)
    dim = len(shape) - 1
    for name in ("softmax", "log_softmax"):
        function: Any = getattr(softmaxes, name)
        result = function(values, dim)
        assert_close(result, function.__wrapped__(values, dim), dtype)
        back: Any = getattr(softmaxes, f"{name}_backward_data")
        expected = back.__wrapped__(grad, result, dim)
        scale = max(1.0, float(np.abs(grad.astype(np.float32)).sum(-1).max()) * 2**-12)
        np.testing.assert_allclose(
            back(grad, result, dim).astype(np.float32), expected.astype(np.float32), rtol=2**-6, atol=2**-9 * scale
        )


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((50, 40), (40,)), ((50, 40), (1, 40)), ((50, 40), (50, 1)), ((50, 1), (50, 40)), ((40,), (50, 40)),
        ((3, 4, 50), (4, 50)), ((3, 4, 50), (3, 1, 1)), ((3, 4, 50), (1, 4, 1)), ((3, 2), (2,)), ((5, 3000), (3000,)),
    ],
)  # fmt: skip
def test_broadcasting(dtype: Any, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = numbers(*first, dtype=dtype), numbers(*second, dtype=dtype, seed=1)
    for kernel in (arithmetic.mul, arithmetic.add):
        function: Any = kernel
        expected = function(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
        actual = function(a, b)
        np.testing.assert_array_equal(np.asarray(actual).astype(np.float32), expected.astype(np.float32))
