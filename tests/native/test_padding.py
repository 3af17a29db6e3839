"""The compiled padding against its NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import padding
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

modes = pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
PADS = pytest.mark.parametrize("pad", [(1, 1), (0, 3), (2, 1, 0, 3), (1, 0, 2, 2, 1, 1), (0, 0, 0, 0)])
constant: Any = padding.constant_pad_nd
edges: Any = padding.edge_pad
edges_back: Any = padding.edge_pad_back


@dtypes
@PADS
@pytest.mark.parametrize("shape", [(4, 5, 6), (2, 3, 4, 5, 17)])
def test_constants(shape: tuple[int, ...], pad: tuple[int, ...], dtype: Any) -> None:
    x = normal(shape, dtype)
    for value in (0, 1.5, float("inf"), float("nan")):
        assert_as_reference(constant, x, pad, value)
    assert_as_reference(constant, x, tuple(-n for n in pad[:2]))
    assert_as_reference(constant, x, (-2, 3))


@dtypes
@modes
@PADS
@pytest.mark.parametrize("shape", [(4, 5, 6), (2, 3, 4, 5, 17)])
def test_edges(mode: str, shape: tuple[int, ...], pad: tuple[int, ...], dtype: Any) -> None:
    result = assert_as_reference(edges, normal(shape, dtype), pad, mode)
    assert_as_reference(edges_back, normal(result.shape, dtype, 1), shape, pad, mode)
    assert_as_reference(edges_back, normal(result.shape, dtype, 1), shape[-len(pad) // 2 :], pad, mode)


@modes
def test_values_that_are_not_finite(mode: str) -> None:
    x = normal((2, 5, 6), np.float32)
    x[0, 0, 0], x[1, 4, 5] = np.nan, np.inf
    result = assert_as_reference(edges, x, (2, 2, 1, 1), mode)
    assert_as_reference(edges_back, result, x.shape, (2, 2, 1, 1), mode)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    x = normal((4, 5, 6), np.float32)
    np.testing.assert_array_equal(edges(layouts(x)[layout], (2, 1), "reflect"), edges(x, (2, 1), "reflect"))


@modes
def test_threads_change_nothing(mode: str) -> None:
    x = normal((60, 40, 40), np.float32)
    expected = edges(x, (2, 2, 2, 2), mode)
    gradient = edges_back(expected, x.shape, (2, 2, 2, 2), mode)
    for count in (2, 8):
        np.testing.assert_array_equal(with_threads(count, edges, x, (2, 2, 2, 2), mode), expected)
        actual = with_threads(count, edges_back, expected, x.shape, (2, 2, 2, 2), mode)
        np.testing.assert_array_equal(actual, gradient)


def test_what_the_reference_serves() -> None:
    x = normal((2, 5, 6), np.float32)
    assert not declines(edges, x, (1, 1), "reflect")
    assert declines(edges, x, (9, 1), "reflect")
    assert declines(edges, x, (-1, 1), "reflect")
    assert declines(edges, x, (1, 1), "mirror")
    assert declines(edges, x.astype(np.int64), (1, 1), "reflect")
    assert declines(constant, x, (1, 1, 1), 0)
    assert declines(constant, x, (-4, -4), 0)
    assert declines(constant, x, (1, 1), True)


@pytest.mark.parametrize("size", [2**62, 2**63 - 1, 2**63 - 3])
def test_sizes_that_no_gradient_has_are_left_to_the_reference(size: int) -> None:
    gradient = normal((2, 5, 6), np.float32)
    assert not declines(edges_back, gradient, (2, 5, 4), (1, 1), "replicate")
    assert declines(edges_back, gradient, (2, 5, size), (1, 1), "replicate")
    assert declines(edges_back, gradient, (2, 5, 4), (2**30, 2**30), "replicate")
