"""What the kernels of kernels/activation.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_complex_bounds, refuse_kinds
from pullback.typing import Array, Scalar


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
    refuse_kinds(input, "biuc", "GeluKernelImpl")


def softplus(input: Array, beta: Scalar = 1, threshold: Scalar = 20) -> None:
    refuse_kinds(input, "biuc", "softplus_cpu")


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


def leaky_relu(input: Array, negative_slope: Scalar = 0.01) -> None:
    refuse_kinds(input, "biuc", "leaky_relu_cpu")


def prelu_kernel(input: Array, weight: Array) -> None:
    refuse_kinds(input, "biuc", "prelu_cpu")


def rrelu_with_noise(input: Array, noise: Array) -> None:
    refuse_kinds(input, "biuc", "leaky_relu_cpu")


def threshold(input: Array, threshold: Scalar, value: Scalar) -> None:
    refuse_kinds(input, "bc", "threshold_cpu")
