"""Samples for branches of rules that the samples of the families do not take: factors, biases, shapes."""

from __future__ import annotations

import pullback.functions as F
from pullback.nn import functional
from tests.derivatives.sampling import Sample, normal

SAMPLES = [
    Sample("addmm of a matrix", F.addmm, (normal(2, 4), normal(2, 3), normal(3, 4)), complex=True),
    Sample("addbmm with factors", lambda a, b, c: F.addbmm(a, b, c, beta=2, alpha=3), (normal(2, 4), normal(5, 2, 3), normal(5, 3, 4))),
    Sample("baddbmm with factors", lambda a, b, c: F.baddbmm(a, b, c, beta=2, alpha=3), (normal(5, 2, 4), normal(5, 2, 3), normal(5, 3, 4))),
    Sample("addmv without a factor of the vector", lambda a, b, c: F.addmv(a, b, c, alpha=3), (normal(2), normal(2, 3), normal(3))),
    Sample("addr with factors", lambda a, b, c: F.addr(a, b, c, beta=2, alpha=1), (normal(2, 3), normal(2), normal(3))),
    Sample("rsub with a factor", lambda a: F.rsub(a, 2.0, alpha=3), (normal(3),)),
    Sample("rsub of a tensor", F.rsub, (normal(3), normal(3))),
    Sample("linear of a matrix", functional.linear, (normal(4, 3), normal(2, 3), normal(2)), complex=True),
    Sample("linear without bias", functional.linear, (normal(4, 3), normal(2, 3)), complex=True),
    Sample("linear without bias, of a batch", functional.linear, (normal(2, 4, 3), normal(2, 3))),
    Sample("dist that counts", lambda a, b: F.dist(a, b, 0), (normal(3), normal(3))),
    Sample("norm that counts", lambda a: F.norm_dim(a, 0, (1,)), (normal(2, 3),)),
    Sample("vector_norm that counts", lambda a: F.linalg_vector_norm(a, 0), (normal(2, 3),)),
]  # fmt: skip
