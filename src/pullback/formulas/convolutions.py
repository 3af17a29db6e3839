"""Gradients of convolutions, in their own terms, so that they can be differentiated again."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.typing import Shape


def convolution_back(
    grad: Any, weight: Any, input_shape: Shape, stride: Shape, padding: Shape, dilation: Shape, transposed: bool,
    groups: int,
) -> Any:  # fmt: skip
    """The gradient of a convolution with respect to its input: the transposed convolution, and the other way round."""
    rest = [0] * len(stride)
    if not transposed:
        for i in range(len(stride)):
            reached = (grad.shape[2 + i] - 1) * stride[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1
            rest[i] = input_shape[2 + i] + 2 * padding[i] - reached
    result = F.convolution(grad, F.conj(weight), None, stride, padding, dilation, not transposed, tuple(rest), groups)
    return leading_part(result, input_shape) if transposed else result


def leading_part(windows: Any, shape: Shape) -> Any:
    """What lies within `shape`: where output_padding reaches the stride, further windows fit into the padded end."""
    for dim in range(2, windows.ndim):
        if windows.shape[dim] > shape[dim]:
            windows = F.slice_view(windows, dim, 0, shape[dim], 1)
    return windows


def convolution_weight_back(
    grad: Any, input: Any, weight_shape: Shape, stride: Shape, padding: Shape, dilation: Shape, transposed: bool,
    groups: int,
) -> Any:  # fmt: skip
    """The gradient of a convolution with respect to its weight."""
    if transposed:
        return F.conj(F.convolution_grad_weight(grad, input, weight_shape, stride, padding, dilation, groups))
    return F.convolution_grad_weight(input, grad, weight_shape, stride, padding, dilation, groups)


def sum_over_channels(grad: Any) -> Any:
    """The gradient of a bias per channel: everything but dimension 1 summed."""
    return F.sum(grad, (0, *range(2, grad.ndim)), False)
