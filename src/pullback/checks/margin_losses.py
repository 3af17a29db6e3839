"""What the kernels of kernels/margin_losses.py ask of their arguments."""

from __future__ import annotations

from pullback.backend.dtype import scalar_type_name
from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def _require_vector_or_matrix(input: Array) -> None:
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


def _require_classes(target: Array) -> None:
    if target.dtype.str[1:] != "i8":
        raise RuntimeError(f"expected scalar type Long but found {scalar_type_name(target.dtype)}")


def multi_margin_loss(
    input: Array, target: Array, p: int = 1, margin: float = 1.0, weight: Array | None = None, reduction: int = 1
) -> None:
    refuse_kinds(input, "biuc", "multi_margin_loss_cpu_kernel")
    _require_vector_or_matrix(input)
    samples = 1 if input.ndim < 2 else input.shape[0]
    if target.size != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{samples}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    _require_classes(target)


def multilabel_margin_loss(input: Array, target: Array, reduction: int = 1) -> None:
    refuse_kinds(input, "biuc", "multilabel_margin_loss_forward_out_frame")
    _require_vector_or_matrix(input)
    if input.shape != target.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _require_classes(target)
