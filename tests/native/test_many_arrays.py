"""The compiled kernels over lists of arrays against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import many_arrays
from tests.native.rows import needs_extension

pytestmark = needs_extension
scale: Any = many_arrays.scale_arrays


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
