"""Samples of powers, roots, exponentials, logarithms and circular functions."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, away_from, normal, uniform

F: Any = pullback

SAMPLES = [
    Sample("pow", F.pow, (uniform(0.5, 2.0, 3, 4), normal(4)), complex=True),
    Sample("pow-2", lambda x: x**2, (normal(3),), complex=True),
    Sample("pow-3", lambda x: x**3, (normal(3),), complex=True),
    Sample("pow-half", lambda x: x**0.5, (uniform(0.5, 2.0, 3),), complex=True),
    Sample("pow-negative", lambda x: x**-2, (away_from(0.0, 0.5, 3),), complex=True),
    Sample("pow-0", lambda x: x**0, (normal(3),), complex=True),
    Sample("pow-number-first", lambda x: 2**x, (normal(3),), complex=True),
    Sample("float_power", lambda x: F.float_power(x, 2), (normal(3),)),
    Sample("square", F.square, (normal(2, 3),), complex=True),
    Sample("sqrt", F.sqrt, (uniform(0.5, 2.0, 3),), complex=True),
    Sample("rsqrt", F.rsqrt, (uniform(0.5, 2.0, 3),), complex=True),
    Sample("exp", F.exp, (normal(3, 2),), complex=True),
    Sample("exp2", F.exp2, (normal(3),), complex=True),
    Sample("expm1", F.expm1, (normal(3),), complex=True),
    Sample("log", F.log, (uniform(0.5, 2.0, 3),), complex=True),
    Sample("log2", F.log2, (uniform(0.5, 2.0, 3),), complex=True),
    Sample("log10", F.log10, (uniform(0.5, 2.0, 3),), complex=True),
    Sample("log1p", F.log1p, (uniform(-0.5, 2.0, 3),), complex=True),
    Sample("logaddexp", F.logaddexp, (normal(3, 4), normal(4)), complex=True),
    Sample("logaddexp2", F.logaddexp2, (normal(3, 1), normal(4))),
    Sample("sin", F.sin, (normal(3),), complex=True),
    Sample("cos", F.cos, (normal(3),), complex=True),
    Sample("tan", F.tan, (uniform(-1.0, 1.0, 3),), complex=True),
    Sample("asin", F.asin, (uniform(-0.8, 0.8, 3),), complex=True),
    Sample("acos", F.acos, (uniform(-0.8, 0.8, 3),), complex=True),
    Sample("atan", F.atan, (normal(3),), complex=True),
    Sample("sinh", F.sinh, (normal(3),), complex=True),
    Sample("cosh", F.cosh, (normal(3),), complex=True),
    Sample("tanh", F.tanh, (normal(3),), complex=True),
    Sample("asinh", F.asinh, (normal(3),), complex=True),
    Sample("acosh", F.acosh, (uniform(1.2, 3.0, 3),), complex=True),
    Sample("atanh", F.atanh, (uniform(-0.8, 0.8, 3),), complex=True),
    Sample("atan2", F.atan2, (normal(3, 4), away_from(0.0, 0.5, 4))),
    Sample("hypot", F.hypot, (away_from(0.0, 0.3, 3, 1), normal(4))),
    Sample("deg2rad", F.deg2rad, (normal(3),)),
    Sample("rad2deg", F.rad2deg, (normal(3),)),
    Sample("sinc", F.sinc, (away_from(0.0, 0.3, 3),), complex=True),
]
