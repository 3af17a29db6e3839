"""Samples of activation functions."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, away_from, distinct, normal, uniform

F: Any = pullback.functions

SAMPLES = [
    Sample("relu", F.relu, (away_from(0.0, 0.1, 3, 4),)),
    Sample("relu6", F.relu6, (uniform(0.5, 5.5, 4),)),
    Sample("sigmoid", F.sigmoid, (normal(3),), complex=True),
    Sample("logsigmoid", F.logsigmoid, (normal(3),)),
    Sample("silu", F.silu, (normal(3),)),
    Sample("mish", F.mish, (normal(3),)),
    Sample("gelu", F.gelu, (normal(3),)),
    Sample("gelu-tanh", lambda x: F.gelu(x, approximate="tanh"), (normal(3),)),
    Sample("softplus", lambda x: F.softplus(x, 2, 3), (normal(5, scale=2.0),)),
    Sample("softshrink", F.softshrink, (distinct(6),)),
    Sample("hardshrink", F.hardshrink, (distinct(6),)),
    Sample("hardtanh", F.hardtanh, (distinct(6),)),
    Sample("hardsigmoid", F.hardsigmoid, (normal(5, scale=1.0),)),
    Sample("hardswish", F.hardswish, (normal(5, scale=1.0),)),
    Sample("elu", lambda x: F.elu(x, 0.7), (away_from(0.0, 0.1, 5),)),
    Sample("selu", F.selu, (away_from(0.0, 0.1, 5),)),
    Sample("celu", lambda x: F.celu(x, 0.7), (away_from(0.0, 0.1, 5),)),
    Sample("leaky_relu", lambda x: F.leaky_relu(x, 0.2), (away_from(0.0, 0.1, 5),)),
    Sample("prelu", F.prelu, (away_from(0.0, 0.1, 2, 3, 2), normal(3))),
    Sample("prelu-shared", F.prelu, (away_from(0.0, 0.1, 4), normal(1))),
    Sample("rrelu", F.rrelu, (away_from(0.0, 0.1, 5),)),
    Sample("threshold", lambda x: F.threshold(x, 0.1, 2.0), (distinct(6),)),
    Sample("glu", lambda x: F.glu(x, 0), (normal(4, 3),)),
    Sample("tanhshrink", F.tanhshrink, (normal(3),)),
    Sample("softsign", F.softsign, (away_from(0.0, 0.1, 3),)),
    Sample("logit", F.logit, (uniform(0.1, 0.9, 3),)),
    Sample("logit-eps", lambda x: F.logit(x, 0.3), (uniform(0.35, 0.65, 3),)),
]
