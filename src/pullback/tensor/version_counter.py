"""The count of in-place modifications that a tensor shares with its views and detached aliases.

# Note [Lazy version counters]
Most tensors are never modified and never viewed, so `_counter` is None until one of these happens; None means version
0, shared with nobody. Code that saves a tensor keeps the tensor itself (so it sees a counter made later) or makes the
counter at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from pullback.modes.source_lines import note_write, notes
from pullback.modes.switches import switches


class VersionCounter:
    """A number that in-place operations increase, and the views to tell when their base begins to require grad.

    `lines` are the source lines of the last writes, newest last, where they are noted (Note [Source lines]).
    """

    __slots__ = ("_prune_at", "lines", "value", "views")

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self.views: list[weakref.ref[Any]] | None = None
        self.lines: list[Any] | None = None
        self._prune_at = 16

    def add_view(self, view: Any) -> None:
        """Remember `view` weakly; dead ones are dropped now and then, so that the list stays short."""
        if self.views is None:
            self.views = []
        self.views.append(weakref.ref(view))
        if len(self.views) > self._prune_at:
            self.views = [ref for ref in self.views if ref() is not None]
            self._prune_at = 16 + 2 * len(self.views)

    def live_views(self) -> list[Any]:
        """The views that still exist."""
        return [view for ref in self.views or () if (view := ref()) is not None]


class DetachedVersion(VersionCounter):
    """The counter of a tensor after `detach_()`: counts as before, but equals no version saved before."""

    __slots__ = ("_counter",)

    def __init__(self, counter: VersionCounter) -> None:
        self._counter = counter
        self.views, self.lines = counter.views, counter.lines
        self._prune_at = 16

    @property
    def value(self) -> Any:
        return self._counter.value + 0.5

    @value.setter
    def value(self, value: Any) -> None:
        self._counter.value = int(value - 0.5)


def count_write_slowly(counter: VersionCounter) -> None:
    """Count a write in Python: where `count_write` was not built, and for counters of derived classes."""
    counter.value += 1
    counter.lines = note_write(counter.lines)


def _bound_count_write() -> Any:
    is_built = hasattr(notes, "bump_version") and notes.bind_counter(VersionCounter, count_write_slowly)
    return notes.count_write if is_built else None


count_write: Callable[[VersionCounter], None] = _bound_count_write() or count_write_slowly
"""Count a write of a tensor's memory, and note its line."""


class InferenceVersion(VersionCounter):
    """The counter of inference tensors, which have no version. Reading it raises: that would save one for backward."""

    __slots__ = ()

    def __init__(self) -> None:
        # `value` is left out: setting it would call the property below.
        self.views, self.lines = None, note_write(None)  # the line where the tensor was made
        self._prune_at = 16

    @property
    def value(self) -> int:
        if switches.saves_inference_tensors:
            return 0
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Make a normal tensor of it with .clone() to use it in "
            f"autograd.{self.origin()}"
        )

    @value.setter
    def value(self, value: int) -> None:
        pass

    def origin(self) -> str:
        """Where the tensor was made, for errors; "" where that is not known."""
        return f" It was made in inference mode at {self.lines[0].describe()}." if self.lines else ""

    def count_write(self) -> None:
        """Count nothing: backward does not depend on what may be written here."""


class InferenceAliasVersion(InferenceVersion):
    """The counter of what `detach()` and `.data` make of an inference tensor outside of inference mode.

    As in PyTorch it may be written to, and its writes are counted; it cannot be saved for backward either.
    """

    __slots__ = ("writes",)

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def count_write(self) -> None:
        """Count one write outside of inference mode, in which none is counted."""
        self.writes += not switches.inference_mode
