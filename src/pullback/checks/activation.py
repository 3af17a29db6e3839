"""What the kernels of kernels/activation.py ask of their arguments."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_complex_bounds, refuse_kinds
from pullback.typing import Array, Dim, Scalar


def relu(input: Array) -> None:
    if input.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    refuse_complex_bounds(input)


def logsigmoid(input: Array) -> None:
    refuse_kinds(input, "biuc", "log_sigmoid_cpu")


def silu(input: Array) -> None:
    refuse_kinds(input, "biu", "silu_cpu")


def mish(input: Array) -> None:
    refuse_kinds(input, "biuc", "mish_cpu")


def gelu(input: Array, *, approximate: str = "none") -> None:
    if approximate != "none" and approximate != "tanh":  # as expressions know it
        raise RuntimeError(f"approximate argument must be either none or tanh, got '{approximate}'.")
    refuse_kinds(input, "biuc", "GeluKernelImpl")


def softplus(input: Array, beta: Scalar = 1, threshold: Scalar = 20) -> None:
    refuse_kinds(input, "biuc", "softplus_cpu")


def softshrink(input: Array, lambd: Scalar = 0.5) -> None:
    refuse_kinds(input, "biuc", "softshrink_check")
    if lambd < 0:  # type: ignore[operator]
        raise RuntimeError(
            f"lambda must be in range [0, {np.finfo(input.dtype).max:g}] for input dtype {scalar_type_name(input.dtype)}, "
            f"but found {lambd:g}"
        )


def hardshrink(input: Array, lambd: Scalar = 0.5) -> None:
    refuse_kinds(input, "biuc", "hardshrink_cpu")


def hardtanh(input: Array, min_val: Scalar = -1.0, max_val: Scalar = 1.0) -> None:
    refuse_kinds(input, "bc", "hardtanh")
    if input.dtype.kind == "u" and (min_val < 0 or max_val < 0):  # type: ignore[operator]
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


def hardsigmoid(input: Array) -> None:
    refuse_kinds(input, "biuc", "hardsigmoid_cpu")


def hardswish(input: Array) -> None:
    refuse_kinds(input, "biuc", "hardswish_cpu")


def elu(input: Array, alpha: Scalar = 1.0, scale: Scalar = 1, input_scale: Scalar = 1) -> None:
    refuse_kinds(input, "biuc", "elu_cpu")


def celu(input: Array, alpha: Scalar = 1.0) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


def leaky_relu(input: Array, negative_slope: Scalar = 0.01) -> None:
    refuse_kinds(input, "biuc", "leaky_relu_cpu")


def prelu_kernel(input: Array, weight: Array) -> None:
    refuse_kinds(input, "biuc", "prelu_cpu")


def rrelu_with_noise(input: Array, noise: Array) -> None:
    refuse_kinds(input, "biuc", "leaky_relu_cpu")


def threshold(input: Array, threshold: Scalar, value: Scalar) -> None:
    refuse_kinds(input, "bc", "threshold_cpu")


def glu(input: Array, dim: Dim = -1) -> None:
    refuse_kinds(input, "biuc", "glu_cpu")
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
