"""What compile counted: `counters`, and how often it ran."""

from collections import Counter, defaultdict
from typing import Any

__all__ = ["compile_times", "counters"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""PyTorch's names: `stats` (`unique_graphs`, `calls_captured`), `graph_break` by reason, `frames`."""


def compile_times(repr: str = "str", aggregate: bool = False) -> Any:
    """How many programs were made; PyTorch tells times of its own parts here."""
    numbers = counters["stats"]
    rows = [[name, str(number)] for name, number in sorted(numbers.items())]
    if repr == "csv":
        return [name for name, _ in rows], [number for _, number in rows]
    return "\n".join(["compile statistics:", *[f"{name}, {number}" for name, number in rows]])
