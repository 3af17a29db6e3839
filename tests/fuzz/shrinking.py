"""Leaves statements out of a program as long as what differs is still of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.comparison import Difference

Examine = Callable[[Sequence[str]], Difference | None]


def shrink(statements: Sequence[str], difference: Difference, examine: Examine) -> tuple[list[str], Difference]:
    """The shortest program found in which the same field differs after the same statement."""
    current, found = list(statements[: difference.number + 1]), difference
    changed = True
    while changed:
        changed = False
        for position in range(len(current) - 2, -1, -1):
            shorter = current[:position] + current[position + 1 :]
            again = examine(shorter)
            if again is not None and again.kind == found.kind and again.number == len(shorter) - 1:
                current, found, changed = shorter, again, True
    return current, found
