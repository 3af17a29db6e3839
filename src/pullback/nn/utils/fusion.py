"""Batch normalisation folded into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from pullback import creation, functions
from pullback.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(
    weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: Any, shift: Any, dim: int
) -> tuple[Any, Any]:
    bias = creation.zeros_like(mean) if bias is None else bias
    scale = creation.ones_like(mean) if scale is None else scale
    shift = creation.zeros_like(mean) if shift is None else shift
    factor = scale * functions.rsqrt(var + eps)
    shape = [1] * weight.dim()
    shape[dim] = -1
    fused_weight = (weight * factor.reshape(shape)).to(weight.dtype)
    fused_bias = ((bias - mean) * factor + shift).to(bias.dtype)
    return Parameter(fused_weight.detach(), weight.requires_grad), Parameter(fused_bias.detach(), bias.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Any, Any]:
    """Weight and bias of a convolution that includes the normalisation after it."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that includes the normalisation after it; both must be in evaluation mode.

    What it computes is what `bn(conv(x))` computes, by one operation; both modules stay as they are.

    >>> import pullback
    >>> conv, norm = pullback.nn.Conv2d(1, 2, 3).eval(), pullback.nn.BatchNorm2d(2).eval()
    >>> fused, x = pullback.nn.utils.fusion.fuse_conv_bn_eval(conv, norm), pullback.ones(1, 1, 4, 4)
    >>> bool(pullback.allclose(fused(x), norm(conv(x)), atol=1e-6))
    True
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Weight and bias of a linear layer that includes the normalisation after it."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that includes the normalisation after it; both must be in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(linear)
    if fused.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
