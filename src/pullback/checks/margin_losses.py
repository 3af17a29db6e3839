"""What the kernels of kernels/margin_losses.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def _require_vector_or_matrix(input: Array) -> None:
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


def multi_margin_loss(
    input: Array, target: Array, p: int = 1, margin: float = 1.0, weight: Array | None = None, reduction: int = 1
) -> None:
    refuse_kinds(input, "biuc", "multi_margin_loss_cpu_kernel")
    _require_vector_or_matrix(input)


def multilabel_margin_loss(input: Array, target: Array, reduction: int = 1) -> None:
    refuse_kinds(input, "biuc", "multilabel_margin_loss_forward_out_frame")
    _require_vector_or_matrix(input)
