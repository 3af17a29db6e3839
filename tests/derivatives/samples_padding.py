"""Samples of padding."""

from __future__ import annotations

import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

SAMPLES = [
    Sample("pad constant", lambda x: F.pad(x, (1, 2, -1, 0), value=3.0), (normal(2, 3, 4),), complex=True),
    Sample("pad reflect", lambda x: F.pad(x, (1, 2, 2, 0), "reflect"), (normal(2, 3, 4),)),
    Sample("pad reflect cropping", lambda x: F.pad(x, (2, -1), "reflect"), (normal(2, 4),)),
    Sample("pad replicate", lambda x: F.pad(x, (3, 2), "replicate"), (normal(2, 3),)),
    Sample("pad replicate 3d", lambda x: F.pad(x, (1, 0, 2, 1, 0, 1), "replicate"), (normal(2, 2, 3, 2),)),
    Sample("pad circular", lambda x: F.pad(x, (1, 2, 3, 0), "circular"), (normal(2, 3, 4),)),
]
