"""Samples of extrema and order statistics, on values without ties."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, distinct, uniform

F: Any = pullback

SAMPLES = [
    Sample("max", F.max, (distinct(3, 4),)),
    Sample("min", F.min, (distinct(3, 4),)),
    Sample("max-dim", lambda x: F.max(x, 1), (distinct(3, 4),)),
    Sample("min-dim-keepdim", lambda x: F.min(x, 0, True), (distinct(3, 4),)),
    Sample("max-0dim", lambda x: F.max(x, 0), (distinct(),)),
    Sample("amax", lambda x: F.amax(x, (0, 2)), (distinct(2, 3, 4),)),
    Sample("amin", lambda x: F.amin(x, 1, True), (distinct(2, 3, 4),)),
    Sample("aminmax", lambda x: F.aminmax(x, dim=1), (distinct(3, 4),)),
    Sample("sort", lambda x: F.sort(x, 1, True), (distinct(3, 4),)),
    Sample("sort-stable", lambda x: F.sort(x, dim=0, stable=True), (distinct(3, 4),)),
    Sample("msort", F.msort, (distinct(3, 4),)),
    Sample("topk", lambda x: F.topk(x, 2, 0), (distinct(4, 3),)),
    Sample("kthvalue", lambda x: F.kthvalue(x, 2, 1), (distinct(3, 4),)),
    Sample("median", F.median, (distinct(3, 3),)),
    Sample("median-dim", lambda x: F.median(x, 1), (distinct(3, 4),)),
    Sample("nanmedian", F.nanmedian, (distinct(3, 3),)),
    Sample("nanmedian-dim", lambda x: F.nanmedian(x, 0, True), (distinct(3, 4),)),
    Sample("mode", lambda x: F.mode(x, 1), (distinct(3, 4),)),
    Sample("quantile", lambda x: F.quantile(x, 0.3, 1), (distinct(3, 4),)),
    Sample("quantile-list", lambda x, q: F.quantile(x, q, 0, True), (distinct(3, 4), uniform(0.1, 0.4, 2))),
    Sample("nanquantile", lambda x: F.nanquantile(x, 0.6, interpolation="midpoint"), (distinct(3, 4),)),
]
