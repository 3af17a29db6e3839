"""A transposed convolution is the adjoint of the convolution, on whichever road it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels.convolutions import convolution, convolution_grad_weight
from pullback.typing import Array


@pytest.mark.parametrize(
    ("channels", "out_channels", "groups"), [(4, 4, 1), (2, 8, 1), (8, 2, 1), (4, 6, 2), (4, 4, 4)]
)
@pytest.mark.parametrize(("padding", "dilation"), [(0, 1), (1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("batch", [3, 5])
def test_transposed_convolution_is_the_adjoint(
    channels: int, out_channels: int, groups: int, padding: int, dilation: int, stride: int, batch: int
) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((batch, channels, 9, 9))
    weight = generator.standard_normal((out_channels, channels // groups, 3, 3))
    geometry = ((stride, stride), (padding, padding), (dilation, dilation))
    result = convolution(x, weight, None, *geometry, False, (0, 0), groups)
    grad = generator.standard_normal(result.shape)
    spare = (9 + 2 * padding - dilation * 2 - 1) % stride
    adjoint = convolution(grad, weight, None, *geometry, True, (spare, spare), groups)
    assert adjoint.shape == x.shape
    np.testing.assert_allclose(np.vdot(result, grad), np.vdot(x, adjoint), rtol=1e-10)


@pytest.mark.parametrize("batch", [3, 5])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_samples_are_convolved_alike_alone_and_together(batch: int, groups: int, stride: int) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((batch, 4, 7, 8))
    weight = generator.standard_normal((6, 4 // groups, 3, 2))
    grad = generator.standard_normal(convolve(x, weight, stride, groups).shape)
    alone = np.concatenate([convolve(sample[None], weight, stride, groups) for sample in x])
    np.testing.assert_allclose(convolve(x, weight, stride, groups), alone, rtol=1e-10)
    geometry = ((stride, stride), (1, 0), (1, 1), groups)
    expected = sum(
        convolution_grad_weight(sample[None], part[None], weight.shape, *geometry)
        for sample, part in zip(x, grad, strict=True)
    )
    np.testing.assert_allclose(
        convolution_grad_weight(x, grad, weight.shape, *geometry), expected, rtol=1e-9, atol=1e-9
    )


def convolve(x: Array, weight: Array, stride: int, groups: int) -> Array:
    return convolution(x, weight, None, (stride, stride), (1, 0), (1, 1), False, (0, 0), groups)
