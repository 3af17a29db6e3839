"""Samples of einsum: one per feature of the notation."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, normal

F: Any = pullback


def _einsum(equation: str, *shapes: tuple[int, ...]) -> Sample:
    return Sample(
        f"einsum {equation}", lambda *operands: F.einsum(equation, *operands), tuple(normal(*s) for s in shapes),
        complex=True,
    )  # fmt: skip


SAMPLES = [
    _einsum("ij,jk->ik", (2, 3), (3, 2)),
    _einsum("bij,bjk->bki", (2, 2, 3), (2, 3, 2)),
    _einsum("...ij,...jk", (2, 1, 2, 3), (3, 3, 2)),
    _einsum("ii->i", (3, 3)),
    _einsum("i,ij,j", (2,), (2, 3), (3,)),
    _einsum("ij,jk,kl->li", (2, 3), (3, 2), (2, 2)),
    _einsum("bi,bj->jbi", (2, 2), (2, 3)),
    _einsum("ij,ij->i", (2, 3), (2, 1)),
    _einsum("Ab,c->cbA", (2, 3), (2,)),
    _einsum("a...a->...", (2, 3, 2)),
]
