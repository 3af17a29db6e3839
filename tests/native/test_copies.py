"""Compiled row-major copies of transposed arrays against NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from pullback import native
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
