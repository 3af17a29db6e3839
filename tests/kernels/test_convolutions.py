"""A transposed convolution is the adjoint of the convolution, on whichever road it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.kernels.convolutions import convolution


@pytest.mark.parametrize(
    ("channels", "out_channels", "groups"), [(4, 4, 1), (2, 8, 1), (8, 2, 1), (4, 6, 2), (4, 4, 4)]
)
@pytest.mark.parametrize(("padding", "dilation"), [(0, 1), (1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolution_is_the_adjoint(
    channels: int, out_channels: int, groups: int, padding: int, dilation: int, stride: int
) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((3, channels, 9, 9))
    weight = generator.standard_normal((out_channels, channels // groups, 3, 3))
    pairs = [(number, number) for number in (stride, padding, dilation)]
    result = convolution(x, weight, None, *pairs, False, (0, 0), groups)
    grad = generator.standard_normal(result.shape)
    spare = (9 + 2 * padding - dilation * 2 - 1) % stride
    adjoint = convolution(grad, weight, None, *pairs, True, (spare, spare), groups)
    assert adjoint.shape == x.shape
    np.testing.assert_allclose(np.vdot(result, grad), np.vdot(x, adjoint), rtol=1e-10)
