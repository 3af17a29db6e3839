"""Samples of pooling."""

from __future__ import annotations

import pullback
import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, distinct, normal, uniform

SAMPLES = [
    Sample("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), (distinct(2, 2, 7),)),
    Sample("max_pool2d", lambda x: F.max_pool2d(x, (2, 3), 2, 1, ceil_mode=True), (distinct(2, 2, 5, 6),)),
    Sample("max_pool2d overlapping", lambda x: F.max_pool2d(x, 3, 1, 1, 2), (distinct(1, 2, 6, 6),)),
    Sample("max_pool3d", lambda x: F.max_pool3d(x, 2), (distinct(1, 2, 4, 4, 5),)),
    Sample("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), (normal(2, 2, 7),)),
    Sample("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (normal(2, 2, 5, 6),)),
    Sample("avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), (normal(2, 2, 5, 6),)),
    Sample("avg_pool3d", lambda x: F.avg_pool3d(x, 2, 1), (normal(1, 2, 3, 4, 3),)),
    Sample("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), (normal(2, 2, 7),)),
    Sample("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (normal(2, 2, 5, 4),)),
    Sample("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, 2), (normal(1, 2, 3, 4, 3),)),
    Sample("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 3), (distinct(2, 2, 7),)),
    Sample("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), (distinct(2, 2, 4, 4),)),
    Sample("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, 2), (distinct(1, 2, 3, 4, 3),)),
    Sample(
        "fractional_max_pool2d",
        lambda x: F.fractional_max_pool2d(x, 2, 3, _random_samples=pullback.full((2, 2, 2), 0.3, dtype=x.dtype)),
        (distinct(2, 2, 6, 7),),
    ),
    Sample("lp_pool2d", lambda x: F.lp_pool2d(x, 3, 2), (uniform(0.5, 2.0, 1, 2, 4, 4),)),
    Sample(
        "max_unpool2d",
        lambda x: F.max_unpool2d(x, pullback.tensor([[[0, 3], [9, 14]]]), 2),
        (normal(1, 2, 2),),
    ),
]
