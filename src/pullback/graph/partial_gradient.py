"""PartialGradient: the gradient of an array that was read in part, before it is filled up with zeros.

# Note [Partial gradients]
Reading `x[0]`, `x[1]`, ... one by one gives x as many gradients, each zero but in its part. To fill up each and add them
takes n times n elements for n parts. So `select` and slices hand on the part and its place; the first to arrive at an
input's buffer becomes an array, the others are added to it where they belong. Nothing but the engine sees them.
"""

from __future__ import annotations

from typing import Any

from pullback.kernels.indexing import add_part, place_part
from pullback.typing import Shape


class PartialGradient:
    """`part` at the positions start, start + step, ... of dimension `dim`; a step of 0 is the one position `start`."""

    __slots__ = ("dim", "end", "part", "shape", "start", "step")

    def __init__(self, part: Any, shape: Shape, dim: int, start: int, end: int, step: int) -> None:
        self.part = part
        self.shape = shape
        self.dim = dim
        self.start = start
        self.end = end
        self.step = step

    def whole(self) -> Any:
        """The array that it stands for."""
        return place_part(self.part, self.shape, self.dim, self.start, self.end, self.step)

    def add_to(self, whole: Any, first: bool) -> Any:
        """Add it to an array of the same shape and dtype, in place; `first` if no part has been added to it yet."""
        return add_part(whole, self.part, self.dim, self.start, self.end, self.step, first)
