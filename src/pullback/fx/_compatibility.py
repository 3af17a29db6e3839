"""The mark that PyTorch puts on stable functions: accepted, without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind")


def compatibility(is_backward_compatible: bool) -> Callable[[Kind], Kind]:
    """A decorator that changes nothing."""

    def mark(decorated: Kind) -> Kind:
        return decorated

    return mark
