"""Random zeroing of elements or channels while training."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zero elements with probability `p` and scale the others by 1/(1-p).

    The input has any shape, and the result has the same. In evaluation (`eval()`) it is the input itself.

    >>> import pullback
    >>> Dropout(0.5).eval()(pullback.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zero whole channels of sequences.

    (N, C, L) or (C, L) keeps its shape; in training each channel is zero with probability `p`, the others are divided
    by 1 - p. In evaluation y = x.

    >>> import pullback
    >>> pullback.nn.Dropout1d(0.5).eval()(pullback.ones(1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zero whole channels of images.

    (N, C, H, W) or (C, H, W) keeps its shape; in training each channel is zero with probability `p`, the others are
    divided by 1 - p. In evaluation y = x.

    >>> import pullback
    >>> pullback.nn.Dropout2d(0.5)(pullback.ones(1, 2, 4, 4)).shape
    pullback.Size([1, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zero whole channels of volumes.

    (N, C, D, H, W) or (C, D, H, W) keeps its shape; in training each channel is zero with probability `p`, the others
    are divided by 1 - p. In evaluation y = x.

    >>> import pullback
    >>> pullback.nn.Dropout3d(0.5)(pullback.ones(1, 2, 4, 4, 4)).shape
    pullback.Size([1, 2, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of self-normalising activations.

    The shape stays; in training elements become the value at which SELU saturates, with probability `p`, and all are
    scaled and moved so that mean 0 and variance 1 remain. In evaluation y = x.

    >>> import pullback
    >>> pullback.nn.AlphaDropout(0.5).eval()(pullback.tensor([1., 2.]))
    tensor([1., 2.])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input: Tensor) -> Any:
        return functional.feature_alpha_dropout(input, self.p, self.training)
