"""Adding gradients up by compiled loops: in place, and over the dimensions of a broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.native
from pullback.kernels import accumulation, broadcasting
from tests.native.rows import declines, dtypes, needs_extension, normal, with_threads

pytestmark = needs_extension
add_in_place: Any = accumulation.add_in_place
sum_to_like: Any = broadcasting.sum_to_like


@dtypes
@pytest.mark.parametrize("size", [0, 1, 7, 100, 200_000])
def test_add_in_place_changes_its_first_argument_and_returns_it(size: int, dtype: Any) -> None:
    total, value = normal((size,), dtype), normal((size,), dtype, 1)
    expected = total + value
    for threads in (1, 3):
        changed = total.copy()
        assert with_threads(threads, add_in_place, changed, value) is changed
        np.testing.assert_array_equal(changed, expected)


def test_add_in_place_leaves_other_layouts_and_overlaps_to_numpy() -> None:
    total = np.arange(10.0)
    assert declines(add_in_place, total[::2], np.ones(5))
    assert declines(add_in_place, total[1:], total[:-1])
    assert declines(add_in_place, total, np.ones(10, np.float32))
    add_in_place(total[1:], total[:-1])
    assert total.tolist() == [0, 1, 3, 5, 7, 9, 11, 13, 15, 17]
    with pytest.raises(ValueError, match="read-only"):
        add_in_place(np.broadcast_to(np.float64(1), (3,)), np.ones(3))


SHAPES = [
    ((3, 4), (4,)), ((3, 4), (3, 1)), ((3, 4), ()), ((3, 4), (1, 1)), ((2, 3, 4), (3, 1)), ((2, 3, 4), (1, 3, 1)),
    ((5,), ()), ((5,), (1,)), ((0, 3), (3,)), ((3, 0), (3, 1)), ((1, 3), (3,)), ((700, 700), (700,)), ((700, 700), ()),
    ((2, 3, 4, 5), (2, 1, 4, 1)), ((100_000, 3), (3,)), ((3, 100_000), (3, 1)), ((40, 16, 9, 9), (16, 1, 1)), ((200_001,), ()), ((3, 1), (1, 1)),
]  # fmt: skip


@dtypes
@pytest.mark.parametrize(("shape", "wanted"), SHAPES)
def test_sums_are_those_of_the_reference(shape: tuple[int, ...], wanted: tuple[int, ...], dtype: Any) -> None:
    grad = normal(shape, dtype)
    exact = sum_to_like.__wrapped__(grad.astype(np.float64), wanted, np.dtype(np.float64))
    assert declines(sum_to_like, grad, wanted, grad.dtype) == (not grad.size)
    results = [with_threads(threads, sum_to_like, grad, wanted, grad.dtype) for threads in (1, 2, 8)]
    for actual in results:
        assert type(actual) is np.ndarray
        assert (actual.shape, actual.dtype) == (wanted, grad.dtype)
        np.testing.assert_array_equal(actual, results[0])
    scale = np.abs(grad).sum(dtype=np.float64) / max(1, np.prod(wanted))
    np.testing.assert_allclose(results[0], exact, rtol=0, atol=2 * np.finfo(dtype).eps * scale)


def test_a_gradient_of_the_wanted_shape_is_returned_itself() -> None:
    grad = np.ones((2, 3)).T
    assert sum_to_like(grad, (3, 2), grad.dtype) is grad


@pytest.mark.parametrize(
    ("grad", "shape", "dtype"),
    [(np.ones((2, 3)), (3,), np.float32), (np.ones((2, 3), np.complex64), (3,), np.complex64)],
)
def test_what_the_loops_do_not_know_is_left_to_numpy(grad: Any, shape: tuple[int, ...], dtype: Any) -> None:
    assert declines(sum_to_like, grad, shape, np.dtype(dtype))
    made = sum_to_like(grad, shape, np.dtype(dtype))
    assert (made.shape, made.dtype) == (shape, dtype)


def test_a_long_sum_of_float32_loses_a_few_units_at_most() -> None:
    ones = np.full((3_000_001,), 0.1, np.float32)
    made = sum_to_like(ones, (), ones.dtype)
    assert abs(float(made) - 3_000_001 * float(np.float32(0.1))) < 8 * np.spacing(made)
    assert pullback.native.extension is not None
