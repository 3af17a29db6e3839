"""Apple's GPU, of which this build has none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is such a GPU to compute on."""
    return False


def empty_cache() -> None:
    """Accepted: no memory is kept there."""


def manual_seed(seed: int) -> None:
    """Accepted: there is no generator there."""
