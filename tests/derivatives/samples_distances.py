"""Samples of distances, similarities and bilinear forms."""

from __future__ import annotations

import math

import pullback
import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

_ROWS = (normal(2, 3, 4), normal(2, 5, 4))

SAMPLES = [
    Sample("cdist", pullback.cdist, _ROWS),
    Sample("cdist by a product", lambda a, b: pullback.cdist(a, b, 2.0, "use_mm_for_euclid_dist"), _ROWS),
    Sample("cdist 1", lambda a, b: pullback.cdist(a, b, 1.0), _ROWS),
    Sample("cdist 3", lambda a, b: pullback.cdist(a, b, 3.0), _ROWS),
    Sample("cdist inf", lambda a, b: pullback.cdist(a, b, math.inf), _ROWS),
    Sample("pdist", F.pdist, (normal(4, 3),)),
    Sample("pdist 1.5", lambda x: F.pdist(x, 1.5), (normal(4, 3),)),
    Sample("pairwise_distance", F.pairwise_distance, (normal(3, 4), normal(3, 4))),
    Sample("cosine_similarity", F.cosine_similarity, (normal(3, 4), normal(1, 4))),
    Sample("bilinear", F.bilinear, (normal(2, 3), normal(2, 4), normal(5, 3, 4), normal(5))),
]
