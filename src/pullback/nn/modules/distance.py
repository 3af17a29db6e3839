"""Distances and similarities of vectors."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of the difference of vectors in the last dimension.

    Vectors lie along the last dimension, which the result lacks unless `keepdim`. y = (sum of |x1 - x2 + eps| ** p) **
    (1 / p).

    >>> import pullback
    >>> pullback.nn.PairwiseDistance()(pullback.zeros(1, 2), pullback.tensor([[3., 4.]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`.

    Inputs broadcast; the result lacks `dim`. y = sum of x1 * x2 / max(|x1| * |x2|, eps).

    >>> import pullback
    >>> pullback.nn.CosineSimilarity(dim=0)(pullback.tensor([1., 0.]), pullback.tensor([1., 1.]))
    tensor(0.7071)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)
