"""Samples of resizing and of sampling at points."""

from __future__ import annotations

from typing import Any

import pullback.nn.functional as F
from tests.derivatives.sampling import Sample, normal, uniform


def _resize(name: str, shape: tuple[int, ...], **options: Any) -> Sample:
    return Sample(f"interpolate {name}", lambda x: F.interpolate(x, **options), (normal(*shape),))


def _sample(mode: str, padding_mode: str, align_corners: bool) -> Sample:
    name = f"grid_sample {mode} {padding_mode}{' aligned' if align_corners else ''}"
    # Points stay between pixels, where the derivative exists.
    return Sample(
        name,
        lambda x, grid: F.grid_sample(x, grid, mode, padding_mode, align_corners),
        (normal(2, 2, 4, 5), uniform(-1.3, 1.3, 2, 3, 2, 2)),
    )


SAMPLES = [
    _resize("nearest", (1, 2, 5), size=8),
    _resize("nearest 2d", (1, 2, 4, 5), scale_factor=2),
    _resize("nearest-exact", (1, 2, 4, 5), size=(7, 3), mode="nearest-exact"),
    _resize("linear", (1, 2, 5), size=8, mode="linear"),
    _resize("bilinear", (1, 2, 4, 5), size=(7, 3), mode="bilinear"),
    _resize("bilinear aligned", (1, 2, 4, 5), scale_factor=1.7, mode="bilinear", align_corners=True),
    _resize("bicubic", (1, 2, 4, 5), size=(7, 3), mode="bicubic"),
    _resize("trilinear", (1, 1, 3, 4, 2), size=4, mode="trilinear"),
    _resize("area", (1, 2, 5, 7), size=3, mode="area"),
    _resize("bilinear antialiased", (1, 1, 9, 7), size=3, mode="bilinear", antialias=True),
    _resize("bicubic antialiased", (1, 1, 9, 7), size=4, mode="bicubic", antialias=True),
    _resize("lanczos antialiased", (1, 1, 9, 7), size=4, mode="lanczos", antialias=True),
    _sample("bilinear", "zeros", False),
    _sample("bilinear", "border", True),
    _sample("bilinear", "reflection", False),
    _sample("nearest", "zeros", False),
    _sample("bicubic", "zeros", False),
    _sample("bicubic", "reflection", True),
    Sample(
        "grid_sample 3d",
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        (normal(1, 2, 3, 4, 3), uniform(-1.2, 1.2, 1, 2, 2, 2, 3)),
    ),
    Sample("affine_grid", lambda t: F.affine_grid(t, (2, 1, 3, 4), False), (normal(2, 2, 3),)),
    Sample("affine_grid 3d", lambda t: F.affine_grid(t, (1, 1, 2, 3, 2), True), (normal(1, 3, 4),)),
]
