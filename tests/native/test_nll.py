"""The compiled negative log likelihood against the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback import native
from pullback.kernels import nll

kernels: Any = nll

pytestmark = pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [-100, 2])
def test_losses_equal_the_reference(dtype: str, reduction: int, weighted: bool, ignore_index: int) -> None:
    generator = np.random.default_rng(0)
    for count, classes in ((1, 3), (7, 5), (64, 10), (1000, 256)):
        x = generator.standard_normal((count, classes)).astype(dtype)
        target = generator.integers(0, classes, count)
        target[0] = 0
        weight = generator.random(classes).astype(dtype) if weighted else None
        arguments = (x, target, weight, reduction, ignore_index)
        actual, expected = kernels.nll_loss(*arguments), kernels.nll_loss.__wrapped__(*arguments)
        assert isinstance(actual, np.ndarray)
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        grad = generator.standard_normal(count).astype(dtype)
        for given in (grad,) if reduction == 0 else (grad[0], np.asarray(grad[0])):
            back = (given, target, weight, x.shape, reduction, ignore_index)
            actual, expected = kernels.nll_loss_grad(*back), kernels.nll_loss_grad.__wrapped__(*back)
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_loss_of_nothing_is_nan_and_other_cases_are_left_to_the_reference() -> None:
    x = np.zeros((2, 3))
    with np.errstate(invalid="ignore"):
        assert np.isnan(kernels.nll_loss(x, np.array([-100, -100])))
        assert np.isnan(kernels.nll_loss_grad(np.array(1.0), np.array([-100, -100]), None, (2, 3), 1, -100)).sum() == 0
    with pytest.raises(IndexError, match=r"Target 3 is out of bounds\."):
        kernels.nll_loss(x, np.array([0, 3]))
    with pytest.raises(IndexError, match=r"Target -1 is out of bounds\."):
        kernels.nll_loss_grad(np.array(1.0), np.array([0, -1]), None, (2, 3), 1, -100)
    assert kernels.nll_loss(x[0], np.array(1)) == 0
    image = np.random.default_rng(0).standard_normal((2, 3, 4))
    target = np.ones((2, 4), "int64")
    np.testing.assert_allclose(kernels.nll_loss(image, target), -image[:, 1].mean())
    assert np.isnan(kernels.nll_loss(np.array([[np.nan, 1.0]]), np.array([0])))
