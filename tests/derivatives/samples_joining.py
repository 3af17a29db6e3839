"""Samples of joining and splitting."""

from __future__ import annotations

import pullback
from tests.derivatives.sampling import Sample, normal

SAMPLES = [
    Sample("cat", lambda *xs: pullback.cat(xs, 1), (normal(2, 1), normal(2, 3)), complex=True),
    Sample("cat with an empty tensor", lambda x, y: pullback.cat([x, y]), (normal(2, 3), normal(0))),
    Sample("stack", lambda *xs: pullback.stack(xs, -1), (normal(2, 2), normal(2, 2)), complex=True),
    Sample("hstack", lambda *xs: pullback.hstack(xs), (normal(2), normal(3))),
    Sample("vstack", lambda *xs: pullback.vstack(xs), (normal(2), normal(2))),
    Sample("dstack", lambda *xs: pullback.dstack(xs), (normal(2, 2), normal(2, 2))),
    Sample("column_stack", lambda *xs: pullback.column_stack(xs), (normal(2), normal(2, 2))),
    Sample("block_diag", pullback.block_diag, (normal(2, 2), normal(3), normal()), complex=True),
    Sample("split", lambda x: x.split(2, 1), (normal(2, 5),), complex=True),
    Sample("split, one part unused", lambda x: x.split(2)[1], (normal(5, 2),)),
    Sample("split_with_sizes", lambda x: x.split([1, 0, 3]), (normal(4, 2),)),
    Sample("chunk", lambda x: x.chunk(3), (normal(5, 2),)),
    Sample("tensor_split", lambda x: x.tensor_split((1, 3)), (normal(5, 2),)),
    Sample("hsplit", lambda x: x.hsplit(2), (normal(2, 4),)),
    Sample("unbind", lambda x: x.unbind(1), (normal(2, 3),), complex=True),
    Sample("unbind, one slice unused", lambda x: x.unbind(0)[0], (normal(2, 3),)),
]
