"""Masked softmax and its relatives: same shape as the input."""

from __future__ import annotations

from typing import Any

import pullback
from pullback.masked.reductions import norm
from pullback.masked.selection import select
from pullback.tensor.tensor import Tensor


def _converted(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None or input.dtype == dtype else input.to(dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Exponentials of the selected elements, scaled to a sum of one: NaN where none is selected."""
    selected = select(_converted(input, dtype), mask, -float("inf"))
    return pullback.softmax(selected, dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the masked softmax."""
    selected = select(_converted(input, dtype), mask, -float("inf"))
    return pullback.log_softmax(selected, dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The masked softmax of the negated input."""
    selected = select(_converted(input, dtype), mask, float("inf"))
    return pullback.nn.functional.softmin(selected, dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The selected elements divided by their norm, or by `eps` where that is larger."""
    input = _converted(input, dtype)
    length = norm(input, ord, dim, keepdim=True, mask=mask)
    return select(input, mask, 0) / pullback.maximum(length, pullback.full_like(length, eps))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of both exponentials, each where its mask selects it."""
    left = select(_converted(input, dtype), input_mask, -float("inf"))
    right = select(_converted(other, dtype), other_mask, -float("inf"))
    return pullback.logaddexp(left, right)
