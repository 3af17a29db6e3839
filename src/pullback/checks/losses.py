"""What the kernels of kernels/losses.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def mse_loss(input: Array, target: Array, reduction: int = 1) -> None:
    refuse_kinds(input, "biuc", "mse_cpu")


def smooth_l1_loss(input: Array, target: Array, reduction: int = 1, beta: float = 1.0) -> None:
    refuse_kinds(input, "biuc", "smooth_l1_cpu")


def huber_loss(input: Array, target: Array, reduction: int = 1, delta: float = 1.0) -> None:
    refuse_kinds(input, "biuc", "huber_cpu")


def binary_cross_entropy(input: Array, target: Array, weight: Array | None = None, reduction: int = 1) -> None:
    if target.dtype != input.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_type_name(target.dtype)} but expected {scalar_type_name(input.dtype)}: the target must "
            "have the dtype of the input"
        )
    refuse_kinds(input, "biuc", "binary_cross_entropy")
