"""Gradients of activations at numbers that are not."""

from __future__ import annotations

import math

import pytest

import pullback
from pullback.nn import functional

SELU = 1.0507009873554805


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("relu6", 1.0), ("hardtanh", 1.0), ("hardshrink", 1.0), ("softshrink", 1.0), ("elu", 1.0), ("selu", SELU)],
)
def test_gradient_passes_at_nan(name: str, expected: float, create_graph: bool) -> None:
    x = pullback.tensor([math.nan] * 5, dtype=pullback.float64, requires_grad=True)
    (gradient,) = pullback.autograd.grad(getattr(functional, name)(x).sum(), x, create_graph=create_graph)
    assert gradient.tolist() == [expected] * 5
