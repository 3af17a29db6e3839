"""The transforms of random variables, under PyTorch's module name."""

from __future__ import annotations

from pullback.distributions.elementwise_transforms import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from pullback.distributions.joined_transforms import CatTransform, StackTransform
from pullback.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    _InverseTransform,
    identity_transform,
)
from pullback.distributions.vector_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "_InverseTransform",
    "identity_transform",
]  # fmt: skip
