"""A loss on top of a linear layer in one call."""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of `linear(input, linear_weight, linear_bias)`. `options` about chunking change no value.

    >>> import pullback
    >>> x, w = pullback.zeros(2, 3), pullback.ones(4, 3)
    >>> pullback.nn.functional.linear_cross_entropy(x, w, pullback.tensor([0, 3]))
    tensor(1.3863)
    """
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input._array.ndim}")
    return functions.linear_cross_entropy(
        input, linear_weight, target, linear_bias=linear_bias, weight=weight, reduction=reduction,
        ignore_index=ignore_index, label_smoothing=label_smoothing,
    )  # fmt: skip
