"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.functions.windowed_arguments import each_dim
from pullback.tensor.arguments import as_shape
from pullback.tensor.tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _geometry(name: str, dims: int, stride: Any, padding: Any, dilation: Any) -> tuple[Any, Any, Any]:
    """The three arguments for every dimension; an error calls each by its own name."""
    return (
        each_dim(name, "stride", stride, dims),
        each_dim(name, "padding", padding, dims),
        each_dim(name, "dilation", dilation, dims),
    )


def _input(
    dims: int,
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    steps, pads, spread = _geometry(f"conv{dims}d_input", dims, stride, padding, dilation)
    return G.convolution_back(grad_output, weight, as_shape(input_size), steps, pads, spread, False, groups)


def _weight(
    dims: int,
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    steps, pads, spread = _geometry(f"conv{dims}d_weight", dims, stride, padding, dilation)
    return G.convolution_grad_weight(input, grad_output, as_shape(weight_size), steps, pads, spread, groups)


def conv1d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` with respect to an input of `input_size`."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` with respect to a weight of `weight_size`."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` with respect to an input of `input_size`."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv2d` with respect to a weight of `weight_size`."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` with respect to an input of `input_size`."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` with respect to a weight of `weight_size`."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
