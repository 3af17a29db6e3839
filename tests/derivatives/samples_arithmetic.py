"""Samples of arithmetic."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, away_from, normal, transposed, uniform

F: Any = pullback

SAMPLES = [
    Sample("add", F.add, (normal(3, 4), normal(4)), complex=True),
    Sample("add-alpha", lambda x, y: F.add(x, y, alpha=2.5), (normal(3, 1), normal(4)), complex=True),
    Sample("add-number", lambda x: 2 + x + 1.5, (normal(3),), complex=True),
    Sample("sub", F.sub, (normal(), normal(2, 3)), complex=True),
    Sample("sub-alpha", lambda x, y: F.sub(x, y, alpha=3), (normal(3), normal(2, 1)), complex=True),
    Sample("rsub", lambda x, y: F.rsub(x, y, alpha=2), (normal(2, 3), normal(3)), complex=True),
    Sample("rsub-number", lambda x: 1 - x, (normal(2, 3),), complex=True),
    Sample("mul", F.mul, (transposed(normal(3, 4)), normal(3, 1)), complex=True),
    Sample("mul-number", lambda x: 3 * x, (normal(2, 2),), complex=True),
    Sample("mul-empty", F.mul, (normal(0, 3), normal(3)), complex=True),
    Sample("div", F.div, (normal(3, 4), away_from(0.0, 0.5, 4)), complex=True),
    Sample("div-number-first", lambda x: 2 / x, (away_from(0.0, 0.5, 4),), complex=True),
    Sample("div-floor", lambda x, y: F.div(x, y, rounding_mode="floor"), (uniform(2.2, 2.8, 3), uniform(0.9, 1.0, 3))),
    Sample("div-trunc", lambda x, y: F.div(x, y, rounding_mode="trunc"), (uniform(2.2, 2.8, 3), uniform(0.9, 1.0, 3))),
    Sample("remainder", F.remainder, (uniform(5.2, 5.4, 2, 3), uniform(2.0, 2.2, 3))),
    Sample("remainder-number", lambda x: x % 2, (uniform(0.2, 0.8, 3),)),
    Sample("fmod", F.fmod, (uniform(-5.4, -5.2, 2, 3), uniform(2.0, 2.2, 3))),
    Sample("fmod-number", lambda x: F.fmod(x, 2), (uniform(0.2, 0.8, 3),)),
    Sample("neg", F.neg, (normal(3),), complex=True),
    Sample("reciprocal", F.reciprocal, (away_from(0.0, 0.5, 3, 2),), complex=True),
    Sample("addcmul", F.addcmul, (normal(3, 4), normal(4), normal(3, 1)), complex=True),
    Sample("addcmul-value", lambda x, y, z: F.addcmul(x, y, z, value=2.5), (normal(3), normal(), normal(3))),
    Sample("addcdiv", F.addcdiv, (normal(3, 4), normal(4), away_from(0.0, 0.5, 3, 1)), complex=True),
    Sample("addcdiv-value", lambda x, y, z: F.addcdiv(x, y, z, value=3), (normal(), normal(), away_from(0.0, 1.0, 2))),
    Sample("floor", F.floor, (uniform(0.2, 0.8, 3),)),
    Sample("ceil", F.ceil, (uniform(0.2, 0.8, 3),)),
    Sample("trunc", F.trunc, (uniform(0.2, 0.8, 3),)),
    Sample("round", F.round, (uniform(0.6, 0.8, 3),)),
    Sample("round-decimals", lambda x: F.round(x, decimals=1), (uniform(0.16, 0.24, 3),)),
    Sample("frac", F.frac, (uniform(0.2, 0.8, 3),)),
    Sample("sign", F.sign, (away_from(0.0, 0.3, 3),)),
    Sample("copysign", F.copysign, (away_from(0.0, 0.3, 2, 3), away_from(0.0, 0.3, 3))),
    Sample("copysign-number", lambda x: F.copysign(x, -1.0), (away_from(0.0, 0.3, 3),)),
    Sample("frexp", lambda x: F.frexp(x).mantissa, (uniform(1.1, 1.9, 3),)),
    Sample("ldexp", F.ldexp, (normal(2, 3), normal(3))),
    Sample("abs", F.abs, (away_from(0.0, 0.3, 3, 2),), complex=True),
    Sample("sgn", F.sgn, (away_from(0.0, 0.3, 3, 2),), complex=True),
    Sample("angle", F.angle, (away_from(0.0, 0.3, 3),), complex=True),
    Sample("conj_physical", F.conj_physical, (normal(3),), complex=True),
    Sample("polar", F.polar, (uniform(0.5, 2.0, 3, 1), normal(4))),
    Sample("complex", F.complex, (normal(3, 1), normal(4))),
]
