"""What the kernels of kernels/normalization.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import require_floating, require_parameter_dtypes, require_real_floating
from pullback.typing import Array, Shape


def native_layer_norm(
    input: Array, normalized_shape: Shape, weight: Array | None, bias: Array | None, eps: float
) -> None:
    require_real_floating("LayerNormKernelImpl", input)


def batch_norm_training(input: Array, weight: Array | None, bias: Array | None, eps: float) -> None:
    require_real_floating("batch_norm", input)
    require_parameter_dtypes(input, weight, bias)


def batch_norm_evaluation(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, eps: float
) -> None:
    require_real_floating("batch_norm", input)
    require_parameter_dtypes(input, weight, bias, running_mean, running_var)


def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> None:
    require_parameter_dtypes(input, weight, bias)
    require_real_floating("GroupNormKernelImpl", input)


def rms_norm_fused(input: Array, normalized_shape: Shape, weight: Array | None, eps: float | None) -> None:
    require_floating("rms_norm", input)
