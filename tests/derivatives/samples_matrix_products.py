"""Samples of matrix products."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, normal, transposed

F: Any = pullback

ENDS = F.tensor([1, 3], dtype=F.int32)

SAMPLES = [
    Sample("grouped_mm-rows", lambda x, y: F.generated.grouped_mm(x, y, ENDS), (normal(3, 2), normal(2, 2, 2))),
    Sample("grouped_mm-sums", lambda x, y: F.generated.grouped_mm(x, y, ENDS), (normal(2, 3), normal(3, 2))),
    Sample("grouped_mm-columns", lambda x, y: F.generated.grouped_mm(x, y, ENDS), (normal(2, 2, 2), normal(2, 3))),
    Sample("grouped_mm-stacks", lambda x, y: F.generated.grouped_mm(x, y), (normal(2, 2, 2), normal(2, 2, 3))),
    Sample("mm", F.mm, (normal(2, 3), transposed(normal(3, 4))), complex=True),
    Sample("bmm", F.bmm, (normal(2, 2, 3), normal(2, 3, 2)), complex=True),
    Sample("mv", F.mv, (normal(2, 3), normal(3)), complex=True),
    Sample("dot", F.dot, (normal(3), normal(3)), complex=True),
    Sample("vdot", F.vdot, (normal(3), normal(3)), complex=True),
    Sample("outer", F.outer, (normal(2), normal(3)), complex=True),
    Sample("trace", F.trace, (normal(2, 3),), complex=True),
    Sample("kron", F.kron, (normal(2, 3), normal(2, 1)), complex=True),
    Sample("cross", lambda x, y: F.linalg.cross(x, y, dim=1), (normal(2, 3), normal(1, 3)), complex=True),
    Sample("vecdot", F.linalg.vecdot, (normal(2, 3), normal(3)), complex=True),
    Sample("inner", F.inner, (normal(2, 3), normal(4, 3)), complex=True),
    Sample("tensordot", lambda x, y: F.tensordot(x, y, ([0, 2], [1, 0])), (normal(2, 3, 2), normal(2, 2, 3))),
    Sample("tensordot-ones", lambda x, y: F.tensordot(x, y, 1), (normal(2, 1), normal(3, 2))),
    Sample("chain_matmul", F.chain_matmul, (normal(2, 3), normal(3, 1), normal(1, 4))),
    Sample("multi_dot", lambda *m: F.linalg.multi_dot(m), (normal(3), normal(3, 2), normal(2))),
    Sample("matmul-vector-batch", F.matmul, (normal(3), normal(2, 3, 2)), complex=True),
    Sample("matmul-batch-vector", F.matmul, (normal(2, 2, 3), normal(3)), complex=True),
    Sample("matmul-vector-matrix", F.matmul, (normal(3), normal(3, 2)), complex=True),
    Sample("matmul-batch-matrix", F.matmul, (normal(2, 2, 3), normal(3, 2)), complex=True),
    Sample("matmul-broadcast", F.matmul, (normal(2, 1, 2, 3), normal(3, 3, 2)), complex=True),
    Sample("linear", F.nn.functional.linear, (normal(2, 2, 3), normal(4, 3), normal(4))),
    Sample(
        "addmm",
        lambda a, b, c: F.addmm(a, b, c, beta=0.5, alpha=2),
        (normal(4), normal(2, 3), normal(3, 4)),
        complex=True,
    ),
    Sample("addmv", lambda a, b, c: F.addmv(a, b, c, beta=0.5), (normal(1), normal(2, 3), normal(3)), complex=True),
    Sample("addr", lambda a, b, c: F.addr(a, b, c, alpha=2), (normal(2, 1), normal(2), normal(3)), complex=True),
    Sample("baddbmm", F.baddbmm, (normal(2, 2), normal(3, 2, 2), normal(3, 2, 2)), complex=True),
    Sample("addbmm", F.addbmm, (normal(2, 2), normal(3, 2, 2), normal(3, 2, 2)), complex=True),
]
