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


class DrawnNumbers:
    """What a recording drew, in order. A checkpoint moves the stream back and draws the same again, which is no new call."""

    def __init__(self) -> None:
        self._drawn: list[tuple[Any, Any]] = []
        self._next = 0
        self._places: dict[Any, int] = {}
        """How many arrays were drawn before the stream was in a state."""

    def note(self, state: Any) -> None:
        """Know where the stream is that is in this state now."""
        self._places[state] = self._next

    def go_to(self, state: Any) -> bool:
        """Follow the stream to a state; False for one that it was never in."""
        place = self._places.get(state)
        if place is not None:
            self._next = place
        return place is not None

    @property
    def is_behind(self) -> bool:
        """Whether the next array was drawn before."""
        return self._next < len(self._drawn)

    def again(self, what: Any) -> Any:
        """The array that was drawn here before; None if it was another one."""
        former, array = self._drawn[self._next]
        self._next += 1
        return array if what is not None and what == former else None

    def __len__(self) -> int:
        return len(self._drawn)

    def add(self, what: Any, array: Any) -> None:
        """An array was drawn that `what` describes; None: it is not to be drawn again."""
        self._drawn.append((what, array))
        self._next += 1
