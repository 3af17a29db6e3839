"""Samples of norms and distances."""

from __future__ import annotations

from math import inf
from typing import Any

import pullback
from tests.derivatives.sampling import Sample, away_from, normal

F: Any = pullback

SAMPLES = [
    *[
        Sample(f"norm-{p}", lambda x, p=p: F.norm(x, p), (away_from(0, 0.3, 3, 4),), complex=True)
        for p in (1, 1.5, 2, 3, inf)
    ],
    Sample("norm-half", lambda x: F.norm(x, 0.5, 1), (away_from(0, 0.3, 2, 3),)),
    Sample("norm-minus-inf", lambda x: F.norm(x, -inf, 1), (away_from(0, 0.3, 2, 3),)),
    Sample("norm-dims", lambda x: F.norm(x, 3, (0, 2), True), (away_from(0, 0.3, 2, 3, 2),)),
    Sample("dist", lambda x, y: F.dist(x, y, 3), (normal(3, 4), normal(4))),
    Sample("renorm", lambda x: F.renorm(x, 2, 0, 1.0), (normal(3, 4),)),
    Sample("renorm-3", lambda x: F.renorm(x, 3, 1, 0.5), (normal(3, 4),)),
    Sample("pairwise_distance", F.pairwise_distance, (normal(3, 4), normal(3, 4))),
    Sample("cosine_similarity", F.cosine_similarity, (normal(3, 4), normal(3, 4))),
]
