"""nn.grad: gradients of convolutions as functions."""

from __future__ import annotations

import pullback
import pullback.nn.functional as F
from pullback.nn import grad


def test_they_are_the_gradients_of_a_convolution() -> None:
    x = pullback.randn(2, 4, 7, 6, requires_grad=True)
    weight = pullback.randn(6, 2, 3, 2, requires_grad=True)
    result = F.conv2d(x, weight, None, 2, 1, 1, 2)
    upstream = pullback.randn_like(result)
    to_x, to_weight = pullback.autograd.grad(result, (x, weight), upstream)
    pullback.testing.assert_close(grad.conv2d_input(x.shape, weight, upstream, 2, 1, 1, 2), to_x)
    pullback.testing.assert_close(grad.conv2d_weight(x, weight.shape, upstream, 2, 1, 1, 2), to_weight)


def test_they_can_be_differentiated() -> None:
    x = pullback.randn(1, 1, 5, dtype=pullback.float64, requires_grad=True)
    upstream = pullback.randn(1, 1, 3, dtype=pullback.float64, requires_grad=True)
    assert pullback.autograd.gradcheck(lambda a, b: grad.conv1d_weight(a, (1, 1, 3), b), (x, upstream))
