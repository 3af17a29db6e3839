"""Samples of special functions."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, away_from, normal, uniform

F: Any = pullback

SAMPLES = [
    Sample("erf", F.erf, (normal(3),)),
    Sample("erfc", F.erfc, (normal(3),)),
    Sample("erfcx", F.special.erfcx, (normal(3),)),
    Sample("erfinv", F.erfinv, (uniform(-0.8, 0.8, 3),)),
    Sample("ndtr", F.special.ndtr, (normal(3),)),
    Sample("log_ndtr", F.special.log_ndtr, (normal(3),)),
    Sample("ndtri", F.special.ndtri, (uniform(0.1, 0.9, 3),)),
    Sample("entr", F.special.entr, (uniform(0.2, 3.0, 3),)),
    Sample("xlogy", F.xlogy, (normal(2, 3), uniform(0.5, 2.0, 3))),
    Sample("xlogy-number", lambda x: F.xlogy(2.5, x), (uniform(0.5, 2.0, 3),)),
    Sample("xlog1py", F.special.xlog1py, (normal(2, 3), uniform(0.5, 2.0, 3))),
    Sample("lgamma", F.lgamma, (uniform(0.5, 4.0, 3),)),
    Sample("digamma", F.digamma, (uniform(0.5, 4.0, 3),)),
    Sample("polygamma", lambda x: F.polygamma(2, x), (uniform(0.8, 4.0, 3),)),
    Sample("mvlgamma", lambda x: F.mvlgamma(x, 3), (uniform(1.5, 4.0, 3),)),
    Sample("zeta", lambda x: F.special.zeta(2.5, x), (uniform(0.8, 4.0, 3),), forward=False),
    Sample("igamma", lambda x: F.igamma(F.full_like(x, 1.5).detach(), x), (uniform(0.5, 4.0, 3),), forward=False),
    Sample("igammac", lambda x: F.igammac(F.full_like(x, 1.5).detach(), x), (uniform(0.5, 4.0, 3),), forward=False),
    Sample("i0", F.i0, (normal(3),)),
    Sample("i0e", F.special.i0e, (away_from(0.0, 0.2, 3),)),
    Sample("i1", F.special.i1, (away_from(0.0, 0.2, 3),)),
    Sample("i1e", F.special.i1e, (away_from(0.0, 0.2, 3),)),
]
