"""Joining dimensions into one, and the reverse."""

from __future__ import annotations

from typing import Any

from pullback.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Join the dimensions from `start_dim` to `end_dim`; the batch is kept by default.

    (N, A, B, C) becomes (N, A * B * C).

    >>> import pullback
    >>> Flatten()(pullback.ones(2, 3, 4)).shape
    pullback.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split a dimension into several.

    `dim` is a number (or a name), `unflattened_size` the sizes that multiply to its size.

    >>> import pullback
    >>> pullback.nn.Unflatten(1, (2, 3))(pullback.ones(4, 6)).shape
    pullback.Size([4, 2, 3])
    """

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise TypeError(
                "unflattened_size must be a tuple of tuples for named dimensions, which pullback does not have"
            )
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
