"""Samples of embeddings."""

from __future__ import annotations

import pullback
import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

INDICES = [[1, 0, 3], [1, 1, 2]]

SAMPLES = [
    Sample("embedding", lambda w: F.embedding(pullback.tensor(INDICES), w), (normal(5, 3),)),
]
