"""Samples of convolutions: strides, padding, dilation, groups, transposed, of one to three dimensions."""

from __future__ import annotations

import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal

SAMPLES = [
    Sample(
        "conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 1), (normal(2, 2, 6), normal(3, 2, 3), normal(3)), complex=True
    ),
    Sample("conv1d unbatched", lambda x, w: F.conv1d(x, w, padding="same"), (normal(2, 5), normal(3, 2, 4))),
    Sample("conv2d", F.conv2d, (normal(2, 2, 4, 5), normal(3, 2, 2, 3), normal(3))),
    Sample("conv2d 1x1", F.conv2d, (normal(2, 3, 3, 2), normal(2, 3, 1, 1))),
    Sample("conv2d dilated", lambda x, w: F.conv2d(x, w, None, 2, 1, (2, 1)), (normal(1, 2, 6, 5), normal(2, 2, 2, 3))),
    Sample("conv2d groups", lambda x, w: F.conv2d(x, w, groups=2), (normal(2, 4, 4, 3), normal(4, 2, 2, 2))),
    Sample(
        "conv2d depthwise", lambda x, w: F.conv2d(x, w, None, 1, 1, groups=3), (normal(2, 3, 4, 3), normal(3, 1, 3, 3))
    ),
    Sample("conv3d", lambda x, w: F.conv3d(x, w, None, 1, 1), (normal(1, 2, 3, 3, 2), normal(2, 2, 2, 2, 2))),
    Sample(
        "conv_transpose1d",
        lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1),
        (normal(2, 2, 4), normal(2, 3, 3), normal(3)),
        complex=True,
    ),
    Sample(
        "conv_transpose2d",
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, 2, 2),
        (normal(2, 4, 3, 3), normal(4, 1, 3, 2)),
    ),
    Sample("conv_tbc", lambda x, w, b: F.conv_tbc(x, w, b, 1), (normal(5, 2, 2), normal(3, 2, 3), normal(3))),
]
