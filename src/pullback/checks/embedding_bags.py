"""What the kernels of kernels/embedding_bags.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import require_rows
from pullback.typing import Array


def embedding_bag_forward(
    weight: Array, indices: Array, offsets: Array, per_sample_weights: Array | None, mode: int, padding_idx: int,
    scale_grad_by_freq: bool, sparse: bool = False,
) -> None:  # fmt: skip
    require_rows("embedding_bag", indices)
