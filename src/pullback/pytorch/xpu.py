"""Intel's GPU, of which this build has none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is such a GPU to compute on."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0
