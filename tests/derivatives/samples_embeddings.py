"""Samples of embeddings."""

from __future__ import annotations

import pullback
import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, distinct, normal

INDICES = [[1, 0, 3], [1, 1, 2]]

SAMPLES = [
    Sample("embedding", lambda w: F.embedding(pullback.tensor(INDICES), w), (normal(5, 3),)),
    Sample(
        "embedding_bag sum",
        lambda w, p: F.embedding_bag(pullback.tensor(INDICES), w, mode="sum", per_sample_weights=p),
        (normal(5, 3), normal(2, 3)),
    ),
    Sample(
        "embedding_bag mean",
        lambda w: F.embedding_bag(pullback.tensor([1, 0, 3, 1, 1]), w, pullback.tensor([0, 2, 2])),
        (normal(5, 3),),
    ),
    Sample("embedding_bag max", lambda w: F.embedding_bag(pullback.tensor(INDICES), w, mode="max"), (distinct(5, 3),)),
]
