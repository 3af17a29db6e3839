"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

from collections.abc import Callable
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


def _gradient_of_input(dims: int) -> Callable[..., Tensor]:
    def conv_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        steps, pads, spread = _geometry(f"conv{dims}d_input", dims, stride, padding, dilation)
        return G.convolution_back(grad_output, weight, as_shape(input_size), steps, pads, spread, False, groups)

    return _named(
        conv_input, f"conv{dims}d_input", f"The gradient of `conv{dims}d` with respect to an input of `input_size`."
    )


def _gradient_of_weight(dims: int) -> Callable[..., Tensor]:
    def conv_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        steps, pads, spread = _geometry(f"conv{dims}d_weight", dims, stride, padding, dilation)
        return G.convolution_grad_weight(input, grad_output, as_shape(weight_size), steps, pads, spread, groups)

    return _named(
        conv_weight, f"conv{dims}d_weight", f"The gradient of `conv{dims}d` with respect to a weight of `weight_size`."
    )


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


conv1d_input, conv2d_input, conv3d_input = map(_gradient_of_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_gradient_of_weight, (1, 2, 3))
