"""What the kernels of kernels/normalization.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import require_floating, require_real_floating
from pullback.typing import Array, Shape

_FLOAT32 = np.dtype(np.float32)


def _check_parameters(input: Array, *parameters: Array | None) -> None:
    """Refuse parameters of another dtype than the input's, except of float32 beside 16 bits."""
    dtype = input.dtype
    for parameter in parameters:
        if parameter is None or parameter.dtype == dtype or (dtype.itemsize == 2 and parameter.dtype == _FLOAT32):
            continue
        given = f"the input is {scalar_type_name(dtype)}, a parameter {scalar_type_name(parameter.dtype)}"
        if parameter.dtype == _FLOAT32:
            raise RuntimeError(f"mixed dtype (CPU): all inputs must share same datatype. Here {given}")
        raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of Float: {given}")


def native_layer_norm(
    input: Array, normalized_shape: Shape, weight: Array | None, bias: Array | None, eps: float
) -> None:
    require_real_floating("LayerNormKernelImpl", input)


def batch_norm_training(input: Array, weight: Array | None, bias: Array | None, eps: float) -> None:
    require_real_floating("batch_norm", input)
    _check_parameters(input, weight, bias)


def batch_norm_evaluation(
    input: Array, weight: Array | None, bias: Array | None, running_mean: Array, running_var: Array, eps: float
) -> None:
    require_real_floating("batch_norm", input)
    _check_parameters(input, weight, bias, running_mean, running_var)


def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> None:
    _check_parameters(input, weight, bias)
    require_real_floating("GroupNormKernelImpl", input)


def rms_norm_fused(input: Array, normalized_shape: Shape, weight: Array | None, eps: float | None) -> None:
    require_floating("rms_norm", input)
