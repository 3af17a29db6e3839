"""Pooling to given sizes, in the forms that PyTorch's top-level functions have."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.checks.shapes import nothing_to_pool
from pullback.facts import declare
from pullback.tensor.arguments import as_int
from pullback.tensor.tensor import Tensor


@declare(functional=True, written_in="c", found="torch")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of `output_size` windows that cover (N, C, L) or (C, L).

    >>> import pullback
    >>> pullback.adaptive_avg_pool1d(pullback.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]])
    """
    size = _one("adaptive_avg_pool1d", input, output_size)
    rows = G.unsqueeze(input, input._array.ndim - 1)
    pooled = G.mean(rows, (-2, -1), True) if size == 1 else G.adaptive_avg_pool2d(rows, (1, size))
    return G.squeeze_dim(pooled, -2)


@declare(found="torch")
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover (N, C, L) or (C, L), and their positions."""
    size = _one("adaptive_max_pool1d", input, output_size)
    values, indices = G.adaptive_max_pool2d(G.unsqueeze(input, input._array.ndim - 1), (1, size))
    return G.squeeze_dim(values, -2), G.squeeze_dim(indices, -2)


def _one(function: str, input: Tensor, output_size: Any) -> int:
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input._array.ndim}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {function})"
        )
    given = output_size
    if isinstance(output_size, (tuple, list)):
        given = output_size[0] if len(output_size) == 1 else None
    is_mean = "avg" in function and given == 1  # nan where there are no elements
    if not is_mean and 0 in input._array.shape[-1 if "avg" in function else 1 :]:
        raise nothing_to_pool(function.replace("avg_pool1d", "avg_pool2d"), input._array.shape)
    if given is None:
        raise RuntimeError(f"{function}() argument 'output_size' should contain one int (got {len(output_size)})")
    size = as_int(given)
    if size < 0 and "max" in function:
        shape = [*input._array.shape[:-1], 1, size]
        raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {shape}")
    if size < 0:
        raise RuntimeError(
            "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received "
            f"{{1, {size}}}"
        )
    return size
