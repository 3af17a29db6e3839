"""Size: the tuple of a tensor's sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from pullback.backend.naming import display_namespace


class Size(tuple[int, ...]):
    """A tuple of sizes that prints as PyTorch's.

    >>> Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        if type(sizes) is tuple:
            return tuple.__new__(cls, sizes)
        elements = list(sizes)
        try:
            return tuple.__new__(cls, [operator.index(size) for size in elements])
        except TypeError:
            at = next(i for i, size in enumerate(elements) if not hasattr(size, "__index__"))
            raise TypeError(
                f"{display_namespace()}.Size() takes an iterable of 'int' (item {at} is '{type(elements[at]).__name__}')"
            ) from None

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if isinstance(item, tuple) else item

    def __add__(self, other: tuple[Any, ...]) -> Any:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return tuple.__new__(Size, tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented  # a list takes the sizes itself
        return tuple.__new__(Size, other + tuple(self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    def __repr__(self) -> str:
        return f"{display_namespace()}.Size({list(self)})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)
