"""The compiled sampling at points against its NumPy reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import grid_sampling
from tests.native.rows import assert_as_reference, declines, dtypes, layouts, needs_extension, normal, with_threads

pytestmark = needs_extension

modes = pytest.mark.parametrize("mode", [0, 1, 2], ids=["bilinear", "nearest", "bicubic"])
paddings = pytest.mark.parametrize("padding", [0, 1, 2], ids=["zeros", "border", "reflection"])
aligned = pytest.mark.parametrize("align", [False, True])
sample_2d: Any = grid_sampling.grid_sampler_2d
sample_3d: Any = grid_sampling.grid_sampler_3d
to_input: Any = grid_sampling.grid_sample_back_input
to_grid: Any = grid_sampling.grid_sample_back_grid


def assert_all_as_reference(sample: Any, x: Any, grid: Any, *options: Any) -> None:
    result = assert_as_reference(sample, x, grid, *options, tolerance=200)
    grad = normal(result.shape, x.dtype, 7)
    assert_as_reference(to_input, grad, x.shape, grid, *options, tolerance=200)
    assert_as_reference(to_grid, grad, x, grid, *options, tolerance=400)


@dtypes
@modes
@paddings
@aligned
@pytest.mark.parametrize(("sizes", "points"), [((5, 7), (4, 6)), ((1, 9), (1, 1)), ((12, 3), (50, 60))])
def test_images(mode: int, padding: int, align: bool, sizes: Any, points: Any, dtype: Any) -> None:
    x, grid = normal((2, 3, *sizes), dtype), normal((2, *points, 2), dtype, 1)
    assert_all_as_reference(sample_2d, x, grid, mode, padding, align)


@dtypes
@pytest.mark.parametrize("mode", [0, 1])
@paddings
@aligned
def test_volumes(mode: int, padding: int, align: bool, dtype: Any) -> None:
    x, grid = normal((2, 3, 4, 5, 6), dtype), normal((2, 3, 7, 5, 3), dtype, 1)
    assert_all_as_reference(sample_3d, x, grid, mode, padding, align)


@modes
@paddings
def test_points_and_pixels_that_are_not_finite(mode: int, padding: int) -> None:
    x, grid = normal((1, 2, 6, 6), np.float32), normal((1, 8, 8, 2), np.float32, 1)
    grid[0, 1, 1, 0], grid[0, 2, 2, 1], grid[0, 3, 3] = np.nan, np.inf, -np.inf
    assert_as_reference(sample_2d, x, grid, mode, padding, False, tolerance=200)
    x[0, 1, 2, 3] = np.inf
    x[0, 0, 0, 0] = np.nan
    assert_as_reference(sample_2d, x, grid, mode, padding, False, tolerance=200)


@pytest.mark.parametrize("layout", ["transposed", "gaps", "reversed"])
def test_other_layouts(layout: str) -> None:
    x, grid = normal((2, 3, 6, 6), np.float32), normal((2, 8, 8, 2), np.float32, 1)
    moved = layouts(x)[layout], layouts(grid)[layout]
    np.testing.assert_array_equal(sample_2d(*moved, 0, 0, False), sample_2d(x, grid, 0, 0, False))


def test_threads_change_nothing() -> None:
    x, grid = normal((2, 8, 40, 40), np.float32), normal((2, 60, 60, 2), np.float32, 1)
    grad = normal((2, 8, 60, 60), np.float32, 2)
    for kernel, arguments in (
        (sample_2d, (x, grid, 0, 0, False)),
        (to_input, (grad, x.shape, grid, 0, 0, False)),
        (to_grid, (grad, x, grid, 0, 0, False)),
    ):
        expected = kernel(*arguments)
        for count in (2, 8):
            np.testing.assert_array_equal(with_threads(count, kernel, *arguments), expected)


def test_what_the_reference_serves() -> None:
    x, grid = normal((2, 3, 6, 6), np.float32), normal((2, 8, 8, 2), np.float32, 1)
    assert not declines(sample_2d, x, grid, 0, 0, False)
    assert declines(sample_2d, x.astype(np.float16), grid.astype(np.float16), 0, 0, False)
    assert declines(sample_2d, x, grid.astype(np.float64), 0, 0, False)
    assert declines(sample_2d, x[:0], grid[:0], 0, 0, False)
    assert declines(to_grid, normal((2, 3, 8, 8), np.float32), x, grid, 1, 0, False)
