"""The operations that fused ones stand for, as far as one expression in `parts=` does not say it."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.tensor.tensor import Tensor


def batched_product(input: Tensor, other: Tensor) -> Any:
    """A product of which one factor has batches: one matrix product where the other has none, else one per batch."""
    first, second = tuple(input.shape), tuple(other.shape)
    if len(second) <= 2:
        rows = (
            G.view(input, (math.prod(first[:-1]), first[-1])) if _is_row_major(input) else input.reshape(-1, first[-1])
        )
        product = G.mm(rows, other) if len(second) == 2 else G.mv(rows, other)
        return G.unsafe_view(product, (*first[:-1], *second[1:]))
    if len(first) == 1:
        return G.squeeze_dim(batched_product(G.unsqueeze(input, 0), other), -2)
    batches = _broadcast(first[:-2], second[:-2])
    count = math.prod(batches)
    left = G.expand(input, (*batches, *first[-2:])).reshape(count, *first[-2:])
    right = G.expand(other, (*batches, *second[-2:])).reshape(count, *second[-2:])
    return G.unsafe_view(G.bmm(left, right), (*batches, first[-2], second[-1]))


def _is_row_major(input: Tensor) -> bool:
    return bool(input._array.flags.c_contiguous)


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    return tuple([b if a == 1 else a for a, b in zip(longer, padded, strict=True)])
