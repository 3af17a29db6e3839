"""The random streams that a function may draw from: the CPU's own, and those of the devices that are in use."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import in_use
from pullback.backend.random import default_generator


def random_states() -> tuple[Any, list[Any]]:
    """Where the streams are now."""
    return default_generator.get_state(), [library.random_states() for library in in_use]


def set_random_states(states: tuple[Any, list[Any]]) -> None:
    """Go back to where the streams were."""
    default_generator.set_state(states[0])
    for library, state in zip(in_use, states[1], strict=False):  # one that came into use since has drawn nothing before
        library.set_random_states(state)
