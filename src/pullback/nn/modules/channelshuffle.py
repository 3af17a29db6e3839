"""Mixing groups of channels."""

from __future__ import annotations

from typing import Any

from pullback.nn import functional
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Take channels from each group in turn.

    (N, C, *) keeps its shape; channels are seen as (groups, C / groups), transposed and flattened.

    >>> import pullback
    >>> pullback.nn.ChannelShuffle(2)(pullback.arange(4.).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Any:
        return functional.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
