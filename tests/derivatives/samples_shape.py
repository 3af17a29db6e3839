"""Samples of views, copies in another shape and rearranged copies."""

from __future__ import annotations

from typing import Any

import pullback
from tests.derivatives.sampling import Sample, normal, transposed


def _filled(x: Any, y: Any) -> Any:
    copy = x.clone()
    copy.copy_(y)
    return copy


SAMPLES = [
    Sample("clone", lambda x: x.clone(), (normal(2, 3),), complex=True),
    Sample("contiguous", lambda x: x.t().contiguous(), (normal(2, 3),), complex=True),
    Sample("copy_", _filled, (normal(2, 3), normal(3)), complex=True),
    Sample("view", lambda x: x.view(3, -1), (normal(2, 3),), complex=True),
    Sample("reshape of a transpose", lambda x: x.t().reshape(6), (normal(2, 3),), complex=True),
    Sample("view as complex", lambda x: pullback.view_as_complex(x).abs(), (normal(3, 2),)),
    Sample("view as real", lambda x, y: pullback.view_as_real(pullback.complex(x, y)), (normal(3), normal(3))),
    Sample("expand", lambda x: x.expand(4, 3, -1), (normal(3, 1),), complex=True),
    Sample("expand of a number", lambda x: x.expand(2, 2), (normal(),)),
    Sample("transpose", lambda x: x.transpose(0, -1), (normal(2, 3, 2),), complex=True),
    Sample("permute", lambda x: x.permute(2, 0, 1), (normal(2, 3, 2),), complex=True),
    Sample("movedim", lambda x: x.movedim((0, 1), (-1, 0)), (normal(2, 3, 2),)),
    Sample("t", lambda x: x.t(), (normal(2, 3),)),
    Sample("unsqueeze", lambda x: x.unsqueeze(1), (transposed(normal(2, 3)),)),
    Sample("squeeze", lambda x: x.squeeze(), (normal(1, 3, 1),)),
    Sample("squeeze one dimension", lambda x: x.squeeze(0), (normal(1, 3, 1),)),
    Sample("squeeze a dimension that stays", lambda x: x.squeeze(1), (normal(1, 3),)),
    Sample("squeeze dimensions", lambda x: x.squeeze((0, 1)), (normal(1, 3, 1),)),
    Sample("flatten", lambda x: x.flatten(1), (normal(2, 3, 2),)),
    Sample("unflatten", lambda x: x.unflatten(0, (2, -1)), (normal(6),)),
    Sample("diagonal", lambda x: x.diagonal(1, 0, 2), (normal(3, 2, 4),), complex=True),
    Sample("unfold", lambda x: x.unfold(0, 3, 2), (normal(7, 2),), complex=True),
    Sample("unfold without gaps", lambda x: x.unfold(1, 2, 1), (normal(2, 5),)),
    Sample("as_strided", lambda x: x.as_strided((2, 2), (3, 1), 1), (normal(2, 4),), complex=True),
    Sample("as_strided with overlap", lambda x: x.as_strided((3, 2), (1, 1)), (normal(2, 4),)),
    Sample("as_strided of an expanded tensor", lambda x: x.expand(3, 2).as_strided((2,), (1,)), (normal(2),)),
    Sample("flip", lambda x: x.flip(0, 1), (normal(2, 3),), complex=True),
    Sample("roll", lambda x: x.roll((1, -1), (0, 1)), (normal(2, 3),)),
    Sample("roll in row-major order", lambda x: x.roll(2), (normal(2, 3),)),
    Sample("rot90", lambda x: x.rot90(3, (0, 1)), (normal(2, 3),)),
    Sample("repeat", lambda x: x.repeat(2, 1, 3), (normal(2, 3),), complex=True),
    Sample("tile", lambda x: x.tile(2), (normal(2, 3),)),
    Sample("repeat_interleave", lambda x: x.repeat_interleave(2, 1), (normal(2, 3),)),
    Sample("repeat_interleave by counts", lambda x: x.repeat_interleave(pullback.tensor([0, 2]), 0), (normal(2, 3),)),
    Sample("tril", lambda x: x.tril(-1), (normal(3, 3),), complex=True),
    Sample("triu", lambda x: x.triu(1), (normal(2, 3, 4),)),
    Sample("diag_embed", lambda x: x.diag_embed(1, 0, 2), (normal(2, 3),), complex=True),
    Sample("diag of a matrix", lambda x: x.diag(1), (normal(3, 4),)),
    Sample("diagonal_copy", lambda x: pullback.diagonal_copy(x), (normal(3, 4),)),
    Sample("unsafe_split", lambda x: pullback.unsafe_split(x, 2), (normal(3, 4),)),
    Sample("t_", lambda x: x.clone().t_(), (normal(2, 3),)),
    Sample("squeeze_", lambda x: x.clone().squeeze_(0), (normal(1, 3),)),
    Sample("meshgrid", lambda x, y: pullback.meshgrid(x, y, indexing="xy"), (normal(2), normal(3))),
    Sample("cartesian_prod", pullback.cartesian_prod, (normal(2), normal(3))),
    Sample("combinations", pullback.combinations, (normal(4),)),
    Sample("vander", lambda x: pullback.vander(x, 4), (normal(3),)),
    Sample("sum_to_size", lambda x: x.sum_to_size(3, 1), (normal(2, 3, 4),)),
]
