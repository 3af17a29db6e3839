"""What the kernels of kernels/embeddings.py ask of their arguments."""

from __future__ import annotations

from pullback.typing import Array


def embedding(
    weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> None:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
