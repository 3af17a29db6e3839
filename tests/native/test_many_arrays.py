"""The compiled kernels over lists of arrays against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import many_arrays
from tests.native.rows import needs_extension

pytestmark = needs_extension
scale: Any = many_arrays.scale_arrays
into: Any = many_arrays.scale_into


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 15, 16, 39])
def test_scaling(dtype: Any, bad: Any, at: int) -> None:
    arrays = [np.random.default_rng(0).standard_normal(n).astype(dtype) for n in (0, 1, 7, 16, 40)]
    if bad is not None:
        arrays[4][at] = bad
    expected = [array.copy() for array in arrays]
    assert scale(arrays, 0.25) is scale.__wrapped__(expected, 0.25) is (bad is None)
    for actual, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_strides_and_what_overflows() -> None:
    array = np.ones((4, 6), np.float32)
    assert scale([array[:, ::2]], 2.0)
    assert array.tolist() == [[2, 1, 2, 1, 2, 1]] * 4
    with np.errstate(over="ignore"):
        assert not scale([np.full(20, 1e38, np.float32)], 100.0)
    assert scale([], 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64])
def test_writing_scaled_arrays_into_others(dtype: Any) -> None:
    sources = [np.random.default_rng(0).standard_normal(shape).astype(dtype) for shape in [(), (0,), (7,), (3, 40)]]
    expected = [source * dtype(0.25) for source in sources]
    targets = [np.full_like(source, np.nan) for source in sources]
    into(targets, sources, 0.25)
    for actual, wanted in zip(targets, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
        assert actual.dtype == wanted.dtype


def test_writing_into_other_strides_and_dtypes() -> None:
    memory = np.zeros((4, 6), np.float32)
    into([memory[:, ::2], memory[:, 1:2]], [np.ones((4, 3), np.float32), np.ones((4, 1))], 2.0)
    assert memory.tolist() == [[2, 2, 2, 0, 2, 0]] * 4
    into([memory], [memory], 0.5)
    assert memory.tolist() == [[1, 1, 1, 0, 1, 0]] * 4
    with pytest.raises(ValueError, match="shorter"):
        into([memory], [], 2.0)
