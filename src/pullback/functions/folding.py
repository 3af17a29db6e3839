"""Rearrangements that PyTorch has two names for."""

from __future__ import annotations

import pullback.generated as G
from pullback.facts import declare
from pullback.tensor.tensor import Tensor


@declare(functional=True, written_in="c", found="torch")
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """As `channel_shuffle`."""
    return G.channel_shuffle(input, groups)
