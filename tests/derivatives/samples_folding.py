"""Samples of rearrangements between blocks and images."""

from __future__ import annotations

import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

SAMPLES = [
    Sample("unfold windows", lambda x: F.unfold(x, (2, 3), 1, 1, 2), (normal(2, 2, 4, 5),)),
    Sample("fold windows", lambda x: F.fold(x, (4, 3), 2), (normal(2, 8, 6),)),
    Sample("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), (normal(2, 8, 2, 3),)),
    Sample("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), (normal(2, 4, 6),)),
    Sample("channel_shuffle", lambda x: F.channel_shuffle(x, 3), (normal(2, 6, 2),)),
]
