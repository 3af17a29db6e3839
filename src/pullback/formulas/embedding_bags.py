"""Gradients of bags of embeddings, in terms of taking and adding rows."""

from __future__ import annotations

from typing import Any

import pullback.generated as F


def embedding_bag_back(
    grad: Any, rows: int, indices: Any, per_sample_weights: Any, mode: int, padding_idx: int, scale_grad_by_freq: bool,
    sparse: bool, owner: Any, factors: Any, chosen: Any,
) -> Any:  # fmt: skip
    """The gradient of the table."""
    if mode == 2:
        return F.put_rows(grad, chosen, rows)
    weights = factors if per_sample_weights is None else per_sample_weights
    shares = F.mul(F.embedding_take(grad, owner, -1, False), F.unsqueeze(weights, 1))
    return F.embedding_gradient(shares, indices, rows, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag_sample_back(grad: Any, weight: Any, indices: Any, padding_idx: int, owner: Any) -> Any:
    """The gradient of the factors of single rows."""
    rows = F.embedding_take(weight, indices, padding_idx, False)
    return F.sum(F.mul(F.embedding_take(grad, owner, -1, False), rows), (1,), False)
