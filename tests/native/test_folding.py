"""Windows as columns, compiled, against the NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import folding
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

# kernel, dilation, padding, stride
OPTIONS = pytest.mark.parametrize(
    "options",
    [
        ((3, 3), (1, 1), (1, 1), (1, 1)),
        ((2, 3), (1, 1), (0, 0), (2, 3)),
        ((4, 4), (1, 1), (0, 0), (4, 4)),
        ((3, 2), (2, 3), (2, 4), (1, 2)),
        ((1, 1), (1, 1), (3, 2), (2, 1)),
    ],
)
unfold: Any = folding.im2col
fold: Any = folding.col2im


@dtypes
@OPTIONS
@pytest.mark.parametrize("shape", [(2, 3, 9, 11), (3, 8, 40), (1, 1, 5, 4)])
def test_columns_and_back(shape: tuple[int, ...], options: Any, dtype: Any) -> None:
    columns = assert_as_reference(unfold, normal(shape, dtype), *options)
    assert_as_reference(fold, normal(columns.shape, dtype, 1), shape[-2:], *options, tolerance=16)


@OPTIONS
def test_values_that_are_not_finite(options: Any) -> None:
    x = normal((2, 3, 9, 11), np.float32)
    x[0, 0, 0, 0], x[1, 2, 8, 10] = np.nan, np.inf
    columns = assert_as_reference(unfold, x, *options)
    assert_as_reference(fold, columns, (9, 11), *options, tolerance=16)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    x, options = normal((2, 3, 9, 11), np.float32), ((3, 3), (1, 1), (1, 1), (2, 2))
    columns = unfold(x, *options)
    np.testing.assert_array_equal(unfold(layouts(x)[layout], *options), columns)
    np.testing.assert_array_equal(fold(layouts(columns)[layout], (9, 11), *options), fold(columns, (9, 11), *options))


def test_threads_change_nothing() -> None:
    x, options = normal((8, 8, 40, 40), np.float32), ((3, 3), (1, 1), (1, 1), (1, 1))
    columns = unfold(x, *options)
    images = fold(columns, (40, 40), *options)
    for count in (2, 8):
        np.testing.assert_array_equal(with_threads(count, unfold, x, *options), columns)
        np.testing.assert_array_equal(with_threads(count, fold, columns, (40, 40), *options), images)


def test_what_the_reference_serves() -> None:
    x, options = normal((2, 3, 9, 11), np.float32), ((3, 3), (1, 1), (1, 1), (2, 2))
    assert not declines(unfold, x, *options)
    assert declines(unfold, x.astype(np.complex64), *options)
    assert declines(unfold, x[..., :0], *options)
    assert declines(unfold, x, (30, 3), *options[1:])
    assert declines(fold, normal((2, 27, 7), np.float32), (9, 11), *options)
