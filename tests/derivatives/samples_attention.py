"""Samples of attention."""

from __future__ import annotations

import pullback
import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

_INPUTS = (normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4))
_MASK = [[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]

SAMPLES = [
    Sample("attention", F.scaled_dot_product_attention, _INPUTS),
    Sample("attention causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), _INPUTS),
    Sample(
        "attention masked",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, pullback.tensor(_MASK) == 1),
        _INPUTS,
    ),
    Sample(
        "attention with shared heads",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        (normal(1, 4, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)),
    ),
    Sample("attention with a trained mask", F.scaled_dot_product_attention, (*_INPUTS, normal(3, 5))),
    Sample("attention unbatched", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (normal(3, 4),)),
]
