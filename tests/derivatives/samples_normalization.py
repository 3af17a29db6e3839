"""Samples of normalizations."""

from __future__ import annotations

import pullback
import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

SAMPLES = [
    Sample("layer_norm", lambda x, w, b: F.layer_norm(x, (2, 4), w, b), (normal(3, 2, 4), normal(2, 4), normal(2, 4))),
    Sample("layer_norm bare", lambda x: F.layer_norm(x, (4,)), (normal(3, 4),)),
    Sample(
        "batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (normal(3, 2, 4), normal(2), normal(2))
    ),
    Sample("batch_norm bare", lambda x: F.batch_norm(x, None, None, training=True), (normal(5, 3),)),
    Sample(
        "batch_norm evaluation",
        lambda x, w, b: F.batch_norm(
            x, pullback.tensor([0.5, -1.0]).double(), pullback.tensor([2.0, 0.3]).double(), w, b
        ),
        (normal(3, 2, 4), normal(2), normal(2)),
    ),
    Sample("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), (normal(2, 4, 3), normal(4), normal(4))),
    Sample("instance_norm", lambda x, w: F.instance_norm(x, None, None, w), (normal(2, 2, 5), normal(2))),
    Sample("rms_norm", lambda x, w: F.rms_norm(x, (4,), w), (normal(3, 4), normal(4))),
    Sample("weight_norm of rows", lambda v, g: pullback._weight_norm(v, g, 0), (normal(3, 4), normal(3, 1))),
    Sample("weight_norm of columns", lambda v, g: pullback._weight_norm(v, g, 2), (normal(3, 2, 4), normal(1, 1, 4))),
    Sample("rms_norm bare", lambda x: F.rms_norm(x, (2, 4), eps=0.1), (normal(3, 2, 4),)),
    Sample("local_response_norm", lambda x: F.local_response_norm(x, 3, 0.5), (normal(2, 4, 3),)),
    Sample("normalize", F.normalize, (normal(3, 4),)),
]
