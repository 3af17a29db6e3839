"""The compiled losses against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import losses, nll
from tests.native.rows import assert_as_reference, declines, dtypes, needs_extension, normal, with_threads

pytestmark = needs_extension

SHAPES = pytest.mark.parametrize("shape", [(5,), (1, 3), (64, 10), (3, 4, 7), (2, 3, 5, 6), (2000, 40)])
REDUCTIONS = pytest.mark.parametrize("reduction", [0, 1, 2])


def targets(shape: tuple[int, ...]) -> Any:
    """A class for each place."""
    classes, rest = (shape[0], ()) if len(shape) == 1 else (shape[1], (shape[0], *shape[2:]))
    return np.asarray(np.random.default_rng(1).integers(0, classes, rest))


@dtypes
@SHAPES
@REDUCTIONS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [-100, 1])
def test_nll_loss(ignore_index: int, weighted: bool, reduction: int, shape: tuple[int, ...], dtype: Any) -> None:
    values, target = -np.abs(normal(shape, dtype)), targets(shape)
    weight = np.abs(normal(shape[:1] if len(shape) == 1 else shape[1:2], dtype, 2)) if weighted else None
    with np.errstate(all="ignore"):
        loss = assert_as_reference(nll.nll_loss, values, target, weight, reduction, ignore_index, tolerance=50)
        assert_as_reference(nll.nll_loss_grad, np.abs(loss), target, weight, shape, reduction, ignore_index)


def test_an_ignored_infinity_is_not_looked_at() -> None:
    values = np.full((2, 3), -np.inf, np.float32)
    values[1] = 2
    assert nll.nll_loss(values, np.array([-100, 1])) == -2


def test_nothing_but_ignored_targets_has_no_mean() -> None:
    assert np.isnan(nll.nll_loss(np.ones((2, 3), np.float32), np.array([-100, -100])))


@pytest.mark.parametrize("target", [3, -1])
def test_a_target_that_is_no_class(target: int) -> None:
    with pytest.raises(IndexError, match=f"Target {target} is out of bounds"):
        nll.nll_loss(np.ones((2, 3), np.float32), np.array([0, target]))


@dtypes
@pytest.mark.parametrize("reduction", [1, 2])
@pytest.mark.parametrize("size", [1, 8, 33, 1000, 200_000])
def test_mse_loss(size: int, reduction: int, dtype: Any) -> None:
    values, target = normal((size,), dtype), normal((size,), dtype, 1)
    assert_as_reference(losses.mse_loss, values, target, reduction, tolerance=20)
    assert_as_reference(losses.mse_loss_grad, np.array(0.5, dtype), values, target, reduction)


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (nll.nll_loss, (np.ones((2, 3), np.float32), np.zeros(2, np.int32))),
        (nll.nll_loss, (np.ones((2, 3), np.float16), np.zeros(2, np.int64))),
        (nll.nll_loss, (np.ones((2, 3), np.float32), np.zeros(3, np.int64))),
        (nll.nll_loss, (np.ones((2, 3), np.float32), np.zeros(2, np.int64), np.ones(3))),
        (nll.nll_loss, (np.ones((0, 3), np.float32), np.zeros(0, np.int64))),
        (losses.mse_loss, (np.ones(3, np.float32), np.ones(3, np.float64))),
        (losses.mse_loss, (np.ones(3, np.float32), np.ones(1, np.float32))),
        (losses.mse_loss, (np.ones(3, np.float32), np.ones(3, np.float32), 0)),
        (losses.mse_loss_grad, (np.ones(3, np.float32), np.ones(3, np.float32), np.ones(3, np.float32), 0)),
    ],
)
def test_what_is_left_to_the_reference(kernel: Any, arguments: tuple[Any, ...]) -> None:
    assert declines(kernel, *arguments)


@dtypes
@pytest.mark.parametrize("threads", [2, 8])
def test_threads_do_not_change_the_result(threads: int, dtype: Any) -> None:
    values, target = normal((300_000,), dtype), normal((300_000,), dtype, 1)
    expected = with_threads(1, losses.mse_loss, values, target)
    np.testing.assert_array_equal(with_threads(threads, losses.mse_loss, values, target), expected)
