"""What the rules of padding share."""

from __future__ import annotations

from pullback.typing import Shape


def opposite(pad: Shape) -> Shape:
    """The padding that undoes `pad`."""
    return tuple([-p for p in pad])
