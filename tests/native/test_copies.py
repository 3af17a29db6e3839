"""Compiled row-major copies of transposed and expanded arrays against NumPy's, and one value in all places."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.backend.array_module import fill_array, full, ones
from pullback.kernels import shape

kernels: Any = shape

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int32", "int64", "complex64", "complex128", "bool", "float16", "int8"]
)
def test_copies_equal_numpy(dtype: str) -> None:
    for sizes in ((3, 5), (1, 7), (33, 65), (200, 300), (2, 3, 4), (5, 1, 6), (2, 33, 3, 34), (0, 4)):
        array = np.arange(np.prod(sizes)).astype(dtype).reshape(sizes)
        for order in itertools.permutations(range(len(sizes))):
            for given in (array.transpose(order), array.transpose(order)[..., ::2]):
                actual = kernels.contiguous_copy(given)
                assert actual.dtype == given.dtype
                assert actual.flags.c_contiguous
                assert actual.flags.owndata
                np.testing.assert_array_equal(actual, given)
                np.testing.assert_array_equal(kernels.contiguous_copy(given, "contiguous_format"), given)


def test_another_order_is_left_to_the_reference() -> None:
    array = np.arange(120.0).reshape(2, 3, 4, 5).transpose(0, 2, 3, 1)
    copied = kernels.contiguous_copy(array, "channels_last")
    np.testing.assert_array_equal(copied, array)
    assert copied.strides == kernels.contiguous_copy.__wrapped__(array, "channels_last").strides


def test_overlapping_and_reversed_arrays() -> None:
    broadcast = np.broadcast_to(np.arange(40.0)[:, None], (40, 50))
    np.testing.assert_array_equal(kernels.contiguous_copy(broadcast), broadcast)
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(100.0), 40).T
    np.testing.assert_array_equal(kernels.contiguous_copy(windows), windows)
    backwards = np.arange(2000.0).reshape(40, 50).T[:, ::-1]
    np.testing.assert_array_equal(kernels.contiguous_copy(backwards), backwards)


DTYPES = ["float32", "float64", "float16", "int64", "int8", "bool", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "expanded"),
    [
        ((), (100, 200)), ((), (3,)), ((1,), (20000,)), ((5, 1), (5, 40)), ((5, 1), (5, 3)), ((2, 3, 1), (2, 3, 17)),
        ((2, 1, 1), (2, 30, 17)), ((1, 30, 1), (2, 30, 17)), ((1, 7), (900, 7)), ((4, 0, 1), (4, 0, 20)), ((300, 1), (300, 300)),
    ],
)  # fmt: skip
def test_a_copy_of_an_expanded_array_has_its_values(
    shape: tuple[int, ...], expanded: tuple[int, ...], dtype: str
) -> None:
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    view = np.broadcast_to(values, expanded)
    made = kernels.contiguous_copy(view)
    np.testing.assert_array_equal(made, view)
    assert made.flags.c_contiguous
    assert made.flags.writeable
    assert not np.shares_memory(made, values)


def test_a_copy_of_a_view_with_gaps_in_front_of_the_expanded_dimension_has_its_values() -> None:
    values = np.arange(24.0).reshape(4, 6)[::-2, ::3, None]
    view = np.broadcast_to(values, (2, 2, 50))
    np.testing.assert_array_equal(kernels.contiguous_copy(view), view)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 100, 8191, 8192, 100_000])
def test_one_value_is_written_to_all_places(count: int, dtype: str) -> None:
    assert (full((count,), 3, np.dtype(dtype)) == np.full(count, 3, dtype)).all()
    assert (ones((2, count), np.dtype(dtype)) == np.ones((2, count), dtype)).all()
    part = np.zeros((count, 2), dtype)
    fill_array(part[:, 1], 1)
    np.testing.assert_array_equal(part, np.tile(np.array([0, 1], dtype), (count, 1)))
