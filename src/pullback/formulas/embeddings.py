"""Gradients of embeddings."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare


@declare(twin="recorded")
def embedding_gradient(
    input: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    """The gradient of the table; dense where it is to be differentiated again."""
    return F.embedding_back(input, indices, rows, padding_idx, scale_grad_by_freq)
