"""Compiled flips, rolls and triangles against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import rearranging
from tests.native.rows import declines, needs_extension, with_threads

pytestmark = needs_extension
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "int8", "complex128"])
SHAPES = [(1,), (9,), (1, 1), (3, 5), (5, 3), (8, 16), (17, 33), (2, 3, 4), (3, 1, 70), (2, 3, 4, 5), (300, 400)]


def array(shape: tuple[int, ...], dtype: str) -> Any:
    return (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)


def assert_same(kernel: Any, *arguments: Any) -> None:
    actual, expected = kernel(*arguments), kernel.__wrapped__(*arguments)
    assert type(actual) is np.ndarray
    assert (actual.dtype, actual.shape, actual.strides) == (expected.dtype, expected.shape, expected.strides)
    np.testing.assert_array_equal(actual, expected)


@dtypes
@pytest.mark.parametrize("shape", SHAPES)
def test_flips(dtype: str, shape: tuple[int, ...]) -> None:
    x = array(shape, dtype)
    for dims in [(), (0,), (len(shape) - 1,), tuple(range(len(shape)))]:
        assert_same(rearranging.flip, x, dims)


@dtypes
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", [0, 1, -1, 3, -5, 1000])
def test_rolls(dtype: str, shape: tuple[int, ...], shift: int) -> None:
    x = array(shape, dtype)
    for dims in [(), *[(d,) for d in range(len(shape))]]:
        assert_same(rearranging.roll, x, (shift,), dims)


@dtypes
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) > 1])
@pytest.mark.parametrize("diagonal", [0, 1, -1, 2, -3, 1000, -1000])
def test_triangles(dtype: str, shape: tuple[int, ...], diagonal: int) -> None:
    x = array(shape, dtype)
    assert_same(rearranging.tril, x, diagonal)
    assert_same(rearranging.triu, x, diagonal)


def test_threads_do_not_change_the_result() -> None:
    x = array((400, 500), "float32")
    cases: list[tuple[Any, tuple[Any, ...]]] = [
        (rearranging.flip, ((0, 1),)),
        (rearranging.roll, ((7,), (0,))),
        (rearranging.tril, (3,)),
    ]
    for kernel, arguments in cases:
        np.testing.assert_array_equal(with_threads(3, kernel, x, *arguments), kernel.__wrapped__(x, *arguments))


def test_what_is_left_to_the_reference() -> None:
    x = array((4, 6), "float32")
    assert declines(rearranging.flip, x.T, (0,))
    assert declines(rearranging.roll, x, (1, 2), (0, 1))
    assert declines(rearranging.tril, x[0])
