"""Samples of sums, means, products and running ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback
from tests.derivatives.sampling import Maker, Sample, away_from, normal, transposed

F: Any = pullback


def with_zeros(count: int, *shape: int) -> Maker:
    """Normal values whose first `count` elements are zero."""

    def make(rng: np.random.Generator, complex: bool) -> Any:
        values = normal(*shape)(rng, complex)
        values.reshape(-1)[:count] = 0
        return values

    return make


SAMPLES = [
    Sample("sum", F.sum, (normal(3, 4),), complex=True),
    Sample("sum-dim", lambda x: F.sum(x, 1), (normal(3, 4),), complex=True),
    Sample("sum-dims-keepdim", lambda x: F.sum(x, (0, -1), True), (transposed(normal(2, 3, 4)),)),
    Sample("sum-0dim", lambda x: F.sum(x, 0), (normal(),)),
    Sample("sum-dtype", lambda x: F.sum(x, 0, dtype=F.float64), (normal(3, 4),)),
    Sample("mean", F.mean, (normal(3, 4),), complex=True),
    Sample("mean-dims", lambda x: F.mean(x, (0, 2)), (normal(2, 3, 4),), complex=True),
    Sample("nansum", lambda x: F.nansum(x, 1), (normal(3, 4),)),
    Sample("nanmean", lambda x: F.nanmean(x, 0, True), (normal(3, 4),)),
    Sample("prod", F.prod, (away_from(0, 0.5, 2, 3),), complex=True),
    Sample("prod-dim", lambda x: F.prod(x, 1, True), (away_from(0, 0.5, 2, 3),), complex=True),
    *[Sample(f"prod-{n}-zeros", F.prod, (with_zeros(n, 2, 3),)) for n in (1, 2, 3)],
    *[Sample(f"prod-dim-{n}-zeros", lambda x: F.prod(x, 1), (with_zeros(n, 2, 4),)) for n in (1, 2, 3)],
    Sample("cumsum", lambda x: F.cumsum(x, 1), (normal(3, 4),), complex=True),
    Sample("cumprod", lambda x: F.cumprod(x, 0), (away_from(0, 0.5, 4, 2),), complex=True),
    *[Sample(f"cumprod-{n}-zeros", lambda x: F.cumprod(x, 1), (with_zeros(n, 2, 5),)) for n in (1, 2, 6)],
    Sample("logcumsumexp", lambda x: F.logcumsumexp(x, 1), (normal(2, 5),), complex=True),
    Sample("cummax", lambda x: F.cummax(x, 1), (normal(3, 5),)),
    Sample("cummin", lambda x: F.cummin(x, 0), (normal(3, 5),)),
    Sample("diff", lambda x: F.diff(x, 2, 0), (normal(4, 3),), complex=True),
    Sample("trapezoid", lambda y, x: F.trapezoid(y, x), (normal(3, 4), normal(4))),
    Sample("cumulative_trapezoid", lambda y: F.cumulative_trapezoid(y, dx=0.5), (normal(3, 4),)),
    Sample("var", F.var, (normal(3, 4),), complex=True),
    Sample("var-dim", lambda x: F.var(x, 1, correction=0), (normal(3, 4),), complex=True),
    Sample("std", lambda x: F.std(x, (0, 2), keepdim=True), (normal(2, 3, 4),), complex=True),
    Sample("var_mean", lambda x: F.var_mean(x, 1), (normal(3, 4),), complex=True),
    Sample("std_mean", lambda x: F.std_mean(x, 0), (normal(3, 4),)),
    Sample("cov", F.cov, (normal(3, 4),), complex=True),
    Sample("corrcoef", lambda x: F.corrcoef(x)[0, 1:], (normal(3, 5),)),
    Sample("logsumexp", lambda x: F.logsumexp(x, 1), (normal(3, 4),), complex=True),
    Sample("logsumexp-dims", lambda x: F.logsumexp(x, (0, 2), True), (normal(2, 3, 2),)),
    Sample("softmax", lambda x: F.softmax(x, 1), (normal(3, 4),)),
    Sample("log_softmax", lambda x: F.log_softmax(x, 0), (transposed(normal(3, 4)),)),
    Sample("softmin", lambda x: pullback.nn.functional.softmin(x, -1), (normal(3, 4),)),
]
