"""Samples of reading elements at positions."""

from __future__ import annotations

import numpy as np

import pullback
from tests.derivatives.sampling import Sample, normal

_ROWS = pullback.tensor([0, 2, 0])
_MASK = pullback.tensor([[True, False, True], [False, False, True]])
_PLACES = pullback.tensor([[0, 2], [1, 1], [0, 0]])

SAMPLES = [
    Sample("x[i]", lambda x: x[-1], (normal(3, 2),), complex=True),
    Sample("x[i, j]", lambda x: x[1, 0], (normal(3, 2),)),
    Sample("x[i:j:k]", lambda x: x[1:5:2], (normal(6, 2),), complex=True),
    Sample("x[..., None, 0]", lambda x: x[..., None, 0], (normal(3, 2),)),
    Sample("x[...]", lambda x: x[...], (normal(3, 2),)),
    Sample("x[tensor]", lambda x: x[_ROWS], (normal(3, 2),), complex=True),
    Sample("x[:, tensor]", lambda x: x[:, _ROWS], (normal(2, 3, 2),)),
    Sample("x[tensor, :, tensor]", lambda x: x[_ROWS, :, _ROWS], (normal(3, 2, 3),)),
    Sample("x[tensor, tensor]", lambda x: x[_ROWS[:, None], _ROWS], (normal(3, 3, 2),)),
    Sample("x[0, tensor]", lambda x: x[0, :, _ROWS], (normal(2, 2, 3),)),
    Sample("x[mask]", lambda x: x[_MASK], (normal(2, 3, 2),), complex=True),
    Sample("x[list]", lambda x: x[[1, -1, 1]], (normal(3, 2),)),
    Sample("x[array]", lambda x: x[np.array([0, 1]), 1:], (normal(3, 2),)),
    Sample("x[True]", lambda x: x[True], (normal(3),)),
    Sample("select", lambda x: x.select(1, -1), (normal(2, 3),)),
    Sample("narrow", lambda x: x.narrow(1, 1, 2), (normal(2, 3),)),
    Sample("narrow_copy", lambda x: x.narrow_copy(1, 1, 2), (normal(2, 3),)),
    Sample("index_select", lambda x: x.index_select(1, _ROWS), (normal(2, 3),), complex=True),
    Sample("gather", lambda x: x.gather(0, _PLACES), (normal(3, 4),), complex=True),
    Sample("gather along the last", lambda x: x.gather(-1, _PLACES), (normal(3, 4),)),
    Sample("take", lambda x: x.take(_PLACES), (normal(2, 3),), complex=True),
    Sample("take_along_dim", lambda x: x.take_along_dim(_PLACES[:, :1], 0), (normal(3, 2),)),
    Sample("masked_select", lambda x: x.masked_select(_MASK), (normal(2, 3),), complex=True),
    Sample("masked_select, broadcast", lambda x: x.masked_select(_MASK), (normal(3),)),
]
