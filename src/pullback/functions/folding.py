"""Rearrangements that PyTorch has two names for."""

from __future__ import annotations

import pullback.generated as G
from pullback.tensor.tensor import Tensor


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """As `channel_shuffle`."""
    return G.channel_shuffle(input, groups)
