"""Samples of writing elements at positions and where masks are true."""

from __future__ import annotations

from typing import Any

import pullback
import pullback.generated as G
from tests.derivatives.sampling import Sample, away_from, distinct, normal

_ROWS = pullback.tensor([0, 2, 0])
_DISTINCT = pullback.tensor([2, 0])
_PLACES = pullback.tensor([[0, 2], [1, 1], [0, 0]])
_MASK = pullback.tensor([[True, False, True], [False, False, True]])


def _assigned(index: Any) -> Any:
    def call(x: Any, value: Any) -> Any:
        result = x.clone()
        result[index] = value
        return result

    return call


def _reduced(reduce: str, include_self: bool = True) -> Any:
    return lambda x, src: x.scatter_reduce(0, _PLACES, src, reduce, include_self=include_self)


def _index_reduced(reduce: str, include_self: bool = True) -> Any:
    return lambda x, src: x.index_reduce(0, _ROWS, src, reduce, include_self=include_self)


SAMPLES = [
    Sample("x[i] = y", _assigned(1), (normal(3, 2), normal(2)), complex=True),
    Sample("x[i:j] = number tensor", _assigned(slice(1, 3)), (normal(3, 2), normal())),
    Sample("x[...] = y", _assigned(...), (normal(3, 2), normal(2))),
    Sample("x[tensor] = y", _assigned(_DISTINCT), (normal(3, 2), normal(2, 2)), complex=True),
    Sample("x[:, tensor] = y", _assigned((slice(None), _DISTINCT)), (normal(2, 3), normal(2, 1))),
    Sample("x[1:, tensor] = y", _assigned((slice(1, None), _DISTINCT)), (normal(3, 3), normal(2))),
    Sample("x[mask] = y", _assigned(_MASK), (normal(2, 3), normal())),
    Sample("index_put", lambda x, v: x.index_put((_DISTINCT,), v), (normal(3, 2), normal(2))),
    Sample(
        "index_put, added", lambda x, v: x.index_put((_ROWS, _ROWS), v, True), (normal(3, 3), normal(3)), complex=True
    ),
    Sample("scatter", lambda x, v: x.scatter(1, pullback.tensor([[0], [1]]), v), (normal(2, 3), normal(2, 1))),
    Sample(
        "scatter, source larger", lambda x, v: x.scatter(1, pullback.tensor([[2, 1]]), v), (normal(2, 3), normal(2, 3))
    ),
    Sample("scatter a number", lambda x: x.scatter(1, _PLACES, 2.0), (normal(3, 3),), complex=True),
    Sample("scatter_add", lambda x, v: x.scatter_add(0, _PLACES, v), (normal(3, 4), normal(3, 2)), complex=True),
    Sample("scatter_reduce sum", _reduced("sum"), (normal(3, 2), normal(3, 2))),
    Sample("scatter_reduce sum, without self", _reduced("sum", False), (normal(3, 2), normal(3, 2))),
    Sample("scatter_reduce prod", _reduced("prod"), (away_from(0.0, 0.3, 3, 2), away_from(0.0, 0.3, 3, 2))),
    Sample(
        "scatter_reduce prod, without self",
        _reduced("prod", False),
        (away_from(0.0, 0.3, 3, 2), away_from(0.0, 0.3, 3, 2)),
    ),
    Sample("scatter_reduce mean", _reduced("mean"), (normal(3, 2), normal(3, 2))),
    Sample("scatter_reduce mean, without self", _reduced("mean", False), (normal(3, 2), normal(3, 2))),
    Sample(
        "scatter_reduce amax", _reduced("amax"), (distinct(3, 2), distinct(3, 2)), second_order=False, forward=False
    ),
    Sample("scatter_reduce amin", _reduced("amin", False), (normal(3, 2), normal(3, 2))),
    Sample("index_add", lambda x, v: x.index_add(0, _ROWS, v, alpha=2), (normal(3, 2), normal(3, 2)), complex=True),
    Sample("index_copy", lambda x, v: x.index_copy(0, _DISTINCT, v), (normal(3, 2), normal(2, 2)), complex=True),
    Sample("index_fill", lambda x: x.index_fill(1, _DISTINCT, 2.0), (normal(2, 3),)),
    Sample("index_fill by a tensor", lambda x, v: x.index_fill(1, _DISTINCT, v), (normal(2, 3), normal())),
    Sample("index_reduce prod", _index_reduced("prod"), (away_from(0.0, 0.3, 3, 2), away_from(0.0, 0.3, 3, 2))),
    Sample("index_reduce mean", _index_reduced("mean", False), (normal(3, 2), normal(3, 2))),
    Sample("index_reduce amin", _index_reduced("amin"), (normal(3, 2), normal(3, 2))),
    Sample("put", lambda x, v: x.put(pullback.tensor([4, 0]), v), (normal(2, 3), normal(2)), complex=True),
    Sample("put, added", lambda x, v: x.put(_ROWS, v, True), (normal(2, 3), normal(3))),
    Sample("masked_fill", lambda x: x.masked_fill(_MASK, 3.0), (normal(3),), complex=True),
    Sample("masked_fill by a tensor", lambda x, v: x.masked_fill(_MASK, v), (normal(2, 3), normal())),
    Sample("masked_scatter", lambda x, v: x.masked_scatter(_MASK, v), (normal(2, 3), normal(4)), complex=True),
    Sample("select_back", lambda x: G.select_back(x, (2, 3), 1, 2), (normal(2),), complex=True),
    Sample("slice_back", lambda x: G.slice_back(x, (2, 5), 1, 1, 4, 2), (normal(2, 2),), complex=True),
    Sample("select_scatter", lambda x, v: x.select_scatter(v, 1, 0), (normal(2, 3), normal(2)), complex=True),
    Sample("slice_scatter", lambda x, v: x.slice_scatter(v, 1, 0, 3, 2), (normal(2, 3), normal(2, 2))),
    Sample("diagonal_scatter", lambda x, v: x.diagonal_scatter(v, 1), (normal(3, 3), normal(2))),
    Sample("as_strided_scatter", lambda x, v: x.as_strided_scatter(v, (2, 2), (3, 1), 1), (normal(2, 4), normal(2, 2))),
    Sample("fill_", lambda x, v: x.clone().fill_(v), (normal(2, 3), normal())),
    Sample("zero_", lambda x: x.clone().zero_() + x, (normal(2, 3),)),
    Sample("fill_diagonal_", lambda x: x.clone().fill_diagonal_(2.0) * x, (normal(3, 3),)),
]
