"""What the kernels of kernels/embeddings.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import require_rows
from pullback.typing import Array


def embedding(
    weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> None:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    require_rows("embedding", indices)


def embedding_gradient(
    input: Array, indices: Array, rows: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> None:
    if sparse and scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients: pass sparse=False"
        )
