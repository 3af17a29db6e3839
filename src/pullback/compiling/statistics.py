"""What compile did so far: counted by name, and logged where `set_logs` asks for it."""

from __future__ import annotations

import logging

from pullback.compiling.recorder import Stop
from pullback.modes.compile_counters import counters

__all__ = ["count_break", "count_program", "counters", "tell_recompile"]

graph_breaks = logging.getLogger("pullback.compile.graph_breaks")
recompiles = logging.getLogger("pullback.compile.recompiles")


def count_program(calls: int) -> None:
    """A program was made of so many calls."""
    counters["stats"].update(unique_graphs=1, calls_captured=calls)
    counters["frames"].update(total=1, ok=1)


def count_break(name: str, stop: Stop) -> None:
    """A recording was stopped."""
    counters["graph_break"][stop.reason] += 1
    graph_breaks.debug("Graph break in %s: %s", name, stop.describe())


def tell_recompile(name: str, kinds: int) -> None:
    """A function met arguments of a kind that it has no program for."""
    recompiles.debug("Recompiling %s: it was called with arguments of kind %d", name, kinds)
