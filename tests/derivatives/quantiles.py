"""The gradient of a random sample: along the samples whose share of smaller ones stays the same.

A sample x of a distribution with the distribution function F(x, a) moves with a so that F stays as it is; hence its gradient
is -(dF/da) / (dF/dx). Finite differences of the drawing itself would show other numbers being drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback

_STEP = 1e-4
_TOLERANCE = {"float64": 1e-3, "float32": 2e-3}


def check_standard_gamma(dtype: str, forward_mode: bool = False) -> None:
    """Compare the gradient of Gamma(a, 1) samples with finite differences of the distribution function, in float64."""
    pullback.manual_seed(0)
    shape = pullback.tensor([0.4, 0.9, 1.5, 3.0, 8.0, 20.0], dtype=getattr(pullback, dtype)).repeat(8)
    if forward_mode:
        sample, actual = pullback.func.jvp(pullback._standard_gamma, (shape,), (pullback.ones_like(shape),))
    else:
        shape.requires_grad_()
        sample = pullback._standard_gamma(shape)
        (actual,) = pullback.autograd.grad(sample.sum(), shape)
    expected = _moved(shape.detach().double(), sample.detach().double())
    np.testing.assert_allclose(actual.double().numpy(), expected.numpy(), rtol=_TOLERANCE[dtype])


def _moved(shape: Any, sample: Any) -> Any:
    higher, lower = (pullback.special.gammainc(shape + step, sample) for step in (_STEP, -_STEP))
    density = ((shape - 1) * sample.log() - sample - pullback.lgamma(shape)).exp()
    return -(higher - lower) / (2 * _STEP) / density
