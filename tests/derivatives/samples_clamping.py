"""Samples of functions that choose between elements."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, away_from, distinct, normal, uniform

F: Any = pullback

SAMPLES = [
    Sample("where", lambda x, y: F.where(x.detach() > 0, x, y), (away_from(0.0, 0.3, 3, 4), normal(4))),
    Sample("where-complex", lambda x, y: F.where(x.detach() == 0, x, y), (normal(3), normal(3)), complex=True),
    Sample("where-number", lambda x: F.where(x.detach() > 0, x, 1.5), (away_from(0.0, 0.3, 3),)),
    Sample("where-number-first", lambda x: F.where(x.detach() > 0, 2, x), (away_from(0.0, 0.3, 3),)),
    Sample("maximum", F.maximum, (distinct(3, 4), uniform(0.01, 0.02, 4))),
    Sample("minimum", F.minimum, (distinct(3, 4), uniform(0.01, 0.02, 4))),
    Sample("fmax", F.fmax, (distinct(3, 4), uniform(0.01, 0.02, 4))),
    Sample("fmin", F.fmin, (distinct(3, 4), uniform(0.01, 0.02, 4))),
    Sample("clamp", lambda x: F.clamp(x, -1, 1.5), (distinct(3, 4),)),
    Sample("clamp-min", lambda x: F.clamp(x, min=0.1), (distinct(3, 4),)),
    Sample("clamp-max", lambda x: F.clamp(x, max=0.1), (distinct(3, 4),)),
    Sample("clamp-tensors", F.clamp, (distinct(3, 4), uniform(-1.0, -0.9, 4), uniform(0.9, 1.0, 3, 1))),
    Sample("clamp-tensors-crossed", F.clamp, (distinct(3, 4), uniform(0.9, 1.0, 4), uniform(-1.0, -0.9, 4))),
    Sample("clamp_min", lambda x: F.clamp_min(x, 0.1), (distinct(6),)),
    Sample("clamp_min-tensor", F.clamp_min, (distinct(3, 4), uniform(0.01, 0.02, 4))),
    Sample("clamp_max", lambda x: F.clamp_max(x, 0.1), (distinct(6),)),
    Sample("clamp_max-tensor", F.clamp_max, (distinct(3, 4), uniform(0.01, 0.02, 4))),
    Sample("lerp", F.lerp, (normal(3, 4), normal(4), normal(3, 1)), complex=True),
    Sample("lerp-number", lambda x, y: F.lerp(x, y, 0.3), (normal(3, 4), normal(4)), complex=True),
    Sample("nan_to_num", F.nan_to_num, (normal(3),)),
]
