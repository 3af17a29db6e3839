"""What compile counted: `counters`, and how often it ran."""

from typing import Any

from pullback.modes.compile_counters import counters

__all__ = ["compile_times", "counters"]


def compile_times(repr: str = "str", aggregate: bool = False) -> Any:
    """How many programs were made; PyTorch tells times of its own parts here."""
    numbers = counters["stats"]
    rows = [[name, str(number)] for name, number in sorted(numbers.items())]
    if repr == "csv":
        return [name for name, _ in rows], [number for _, number in rows]
    return "\n".join(["compile statistics:", *[f"{name}, {number}" for name, number in rows]])
