"""Arguments that stand for one number per spatial dimension."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """A tuple as it is, a number `count` times.

    >>> repeated(3, 2)
    (3, 3)
    """
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,) * count


def reversed_twice(values: Iterable[int]) -> tuple[int, ...]:
    """Each value twice, the last first: the form of padding that `F.pad` takes."""
    return tuple(value for value in reversed(tuple(values)) for _ in range(2))
