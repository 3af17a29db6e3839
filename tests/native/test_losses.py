"""The compiled losses against their NumPy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.kernels import losses, nll
from pullback.recording import array_formulas
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


every_reduction = pytest.mark.parametrize("reduction", [0, 1, 2])
sizes = pytest.mark.parametrize("size", [1, 7, 8, 33, 1000, 200_000])


def start(reduction: int, size: int, dtype: Any) -> Any:
    """A gradient of the reduced losses."""
    return np.array(0.5, dtype) if reduction else normal((size,), dtype, 2)


@dtypes
@every_reduction
@sizes
def test_losses_of_distances(size: int, reduction: int, dtype: Any) -> None:
    values, target = normal((size,), dtype), normal((size,), dtype, 1)
    grad = start(reduction, size, dtype)
    assert_as_reference(losses.mse_loss, values, target, reduction, tolerance=20)
    assert_as_reference(array_formulas.mse_loss_grad, grad, values, target, reduction)
    for limit in (0.3, 1.0, 2.5):
        assert_as_reference(losses.huber_loss, values, target, reduction, limit, tolerance=20)
        assert_as_reference(losses.smooth_l1_loss, values, target, reduction, limit, tolerance=20)
        assert_as_reference(array_formulas.clamped_distance_grad, grad, values, target, reduction, 1 / limit, 1.0)
        assert_as_reference(array_formulas.clamped_distance_grad, grad, values, target, reduction, 1.0, limit)


@dtypes
@every_reduction
@sizes
def test_losses_of_probabilities(size: int, reduction: int, dtype: Any) -> None:
    generator = np.random.default_rng(0)
    target, grad = generator.random(size).astype(dtype), start(reduction, size, dtype)
    probability = generator.random(size).astype(dtype)
    probability[::5], probability[1::7] = 0, 1
    logit = normal((size,), dtype) * 20
    assert_as_reference(losses.soft_margin_loss, logit, np.sign(target - 0.5), reduction, tolerance=20)
    assert_as_reference(array_formulas.soft_margin_loss_grad, grad, logit, np.sign(target - 0.5), reduction)
    with np.errstate(all="ignore"):
        assert_as_reference(losses.binary_cross_entropy, probability, target, None, reduction, tolerance=20)
    assert_as_reference(array_formulas.binary_cross_entropy_grad, grad, probability, target, None, reduction)
    assert_as_reference(losses.binary_cross_entropy_with_logits, logit, target, None, None, reduction, tolerance=20)
    assert_as_reference(array_formulas.logits_grad, grad, logit, target, None, None, reduction)


def test_nan_and_infinities_go_through_losses() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.0, 90.0, -90.0] * 3, np.float32)
    y = np.array([1.0, 0.0, 1.0, np.nan, 1.0, 1.0] * 3, np.float32)
    names = ["mse_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss", "binary_cross_entropy_with_logits"]
    with np.errstate(all="ignore"):
        for name in names:
            kernel = getattr(losses, name)
            np.testing.assert_allclose(kernel(x, y, reduction=0), kernel.__wrapped__(x, y, reduction=0), rtol=1e-5)


def test_a_gradient_at_a_distance_that_is_nan_is_nan() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.5] * 3, np.float32)
    grad, zeros = np.ones((), np.float32), np.zeros(12, np.float32)
    kernel = array_formulas.clamped_distance_grad
    expected = [np.nan, 1.0, -1.0, 0.5] * 3
    np.testing.assert_array_equal(kernel(grad, x, zeros, 2, 1.0, 1.0), expected)
    np.testing.assert_array_equal(kernel.__wrapped__(grad, x, zeros, 2, 1.0, 1.0), expected)


def test_what_is_no_probability_raises_as_the_reference_does() -> None:
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            losses.binary_cross_entropy(np.array([0.5, wrong]), np.array([0.0, 1.0]))


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
        (losses.mse_loss, (np.ones(3, np.float32), np.ones(3, np.float32), 3)),
        (array_formulas.mse_loss_grad, (np.ones(1, np.float32), np.ones(3, np.float32), np.ones(3, np.float32), 0)),
        (array_formulas.mse_loss_grad, (np.ones(3, np.float32), np.ones(3, np.float32), np.ones(3, np.float32), 1)),
        (losses.smooth_l1_loss, (np.ones(3, np.float32), np.ones(3, np.float32), 1, None)),
        (losses.binary_cross_entropy, (np.ones(3, np.float32), np.ones(3, np.float32), np.ones(3, np.float32))),
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
